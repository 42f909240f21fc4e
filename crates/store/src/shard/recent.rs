//! The places of recently written records: a hot key is overwritten without a lookup.
//!
//! A place is a guess by the key's hash. Each use verifies what it names: the record's head and the key in it, and
//! the changeset's entry, which has the key as well. A record of that key in that database's arena is the key's
//! record (invariant 1 of `records`), and a free slot is no record (invariant 1 of `arena`). So changes, moves and
//! removals of records need not be reported here, and a wrong guess is harmless.

use super::databases::Databases;
use super::record::{Compact, equal};
use super::types::{Key, Warm};
use std::hint::black_box;
use std::ops::Range;

/// The most keys that are remembered at a time.
const PLACES: usize = 256;

/// Cache lines of a record that are prefetched if all of it is needed.
const WHOLE_LINES: usize = 20;

/// The place of a key when it was last written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    hash: u32,
    /// The handle of its record; 0 if unknown.
    pub(super) handle: u32,
    /// The number of its entry in the changeset.
    pub(super) entry: u32,
    record: Compact,
}

#[derive(Debug)]
pub(super) struct Recent([Place; PLACES]);

impl Default for Recent {
    fn default() -> Self {
        Self([Place::default(); PLACES])
    }
}

impl Recent {
    #[inline(always)]
    pub(super) fn knows(&self, hash: u32) -> bool {
        let place = &self.0[hash as usize % PLACES];
        place.hash == hash && place.handle != 0
    }

    /// The place for a key's hash; it may hold another key's.
    #[inline(always)]
    pub(super) fn place(&self, hash: u32) -> Place {
        self.0[hash as usize % PLACES]
    }

    /// Remembers the record of a key, if it is one that can be overwritten.
    #[inline(always)]
    pub(super) fn note(&mut self, hash: u32, handle: u32, slot: &[u8]) {
        if let Some(record) = Compact::of(slot) {
            self.0[hash as usize % PLACES] = Place {
                hash,
                handle,
                entry: u32::MAX,
                record,
            };
        }
    }

    #[inline(always)]
    pub(super) fn note_entry(&mut self, hash: u32, entry: u32) {
        self.0[hash as usize % PLACES].entry = entry;
    }
}

impl Place {
    /// Checked first: reading another key's record would be a cache miss in vain.
    #[inline(always)]
    pub(super) fn may_be(&self, key: Key<'_>) -> bool {
        self.hash == key.hash && self.handle != 0
    }

    /// The position of the value, if the slot has the key's record with an unchanged head.
    #[inline(always)]
    pub(super) fn value_in(&self, slot: &[u8], key: &[u8]) -> Option<Range<usize>> {
        let (name, value) = self.record.parts(slot)?;
        equal(slot.get(name)?, key).then_some(value)
    }
}

/// Prefetching for a batch of commands.
impl Databases {
    /// Keys whose cache misses [`Databases::warm`] takes together.
    pub(super) const WARMED: usize = 16;

    /// See [`Shard::warm_index`](super::Shard::warm_index).
    #[inline]
    pub(super) fn warm_index(&self, db: usize, hash: u32) -> Warm {
        if self.recent.knows(hash) {
            return Warm(0);
        }
        Warm(self.dbs[db].records.candidate(hash))
    }

    /// See [`Shard::warm_record`](super::Shard::warm_record).
    #[inline]
    pub(super) fn warm_record(&self, db: usize, warm: Warm) -> u64 {
        if warm.0 == 0 {
            return 0;
        }
        black_box(self.dbs[db].records.warm(warm.0))
    }

    /// Does both for some keys with their databases, whose records are read or written whole.
    pub(super) fn warm(&self, keys: impl Iterator<Item = (usize, u32)>) {
        let mut found = [(0, Warm(0)); Self::WARMED];
        let mut any = 0;
        for ((db, hash), found) in keys.zip(&mut found) {
            *found = (db, self.warm_index(db, hash));
            any |= found.1.0;
        }
        if any == 0 {
            return;
        }
        for (db, warm) in found.into_iter().filter(|(_, warm)| warm.0 != 0) {
            black_box(self.dbs[db].records.warm_lines(warm.0, WHOLE_LINES));
        }
    }
}
