//! Where lie the records that were written lately: a hot key's is overwritten
//! without looking it up.
//!
//! A place is a guess, by the key's hash. What it names is asked each time
//! whether it still is so: the record's head, and the key in it; the
//! changeset's entry, which has the key, too. A record of that key in that
//! database's arena is the key's record (invariant 1 of `db`), and a free slot
//! is none (invariant 1 of `arena`). So nobody has to tell of records that
//! change, move or go, and a wrong guess does no harm.

use super::Shard;
use super::record::{Compact, equal};
use super::types::{Key, Warm};
use std::hint::black_box;
use std::ops::Range;

/// So many keys are hot at a time, at most.
const PLACES: usize = 256;

/// So many cache lines of a record are loaded where all of it is needed.
const WHOLE_LINES: usize = 20;

/// What was found of a key when it was last written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    hash: u32,
    /// Of its record; 0 where nothing is known.
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

    /// Where to look for a key; what is there may be another's.
    #[inline(always)]
    pub(super) fn place(&self, hash: u32) -> Place {
        self.0[hash as usize % PLACES]
    }

    /// Remembers the record of a key, if it is one that can be.
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
    /// Asked first: another key's record would be a cache miss for nothing.
    #[inline(always)]
    pub(super) fn may_be(&self, key: Key<'_>) -> bool {
        self.hash == key.hash && self.handle != 0
    }

    /// Where the value lies, if the slot has the key's record, and that is as
    /// it was.
    #[inline(always)]
    pub(super) fn value_in(&self, slot: &[u8], key: &[u8]) -> Option<Range<usize>> {
        let (name, value) = self.record.parts(slot)?;
        equal(slot.get(name)?, key).then_some(value)
    }
}

/// Loading ahead what a batch of commands needs.
impl Shard {
    /// Keys whose cache misses [`Shard::warm`] takes together.
    pub const WARMED: usize = 16;

    /// Loads the key's line of the index. For a batch of keys, first all of
    /// these, then [`Shard::warm_record`] for each result: within each pass
    /// the processor waits for all the misses together. What was written
    /// lately needs neither.
    #[inline]
    pub fn warm_index(&self, db: usize, hash: u32) -> Warm {
        if self.recent.knows(hash) {
            return Warm(0);
        }
        Warm(self.dbs[db].index.candidate(hash))
    }

    /// Loads what most probably is the record's slot. The value means nothing.
    #[inline]
    pub fn warm_record(&self, db: usize, warm: Warm) -> u64 {
        if warm.0 == 0 {
            return 0;
        }
        black_box(self.dbs[db].arena.warm(warm.0))
    }

    /// Both, for some keys with their databases, whose records are read or
    /// written whole.
    pub fn warm(&self, keys: impl Iterator<Item = (usize, u32)>) {
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
            black_box(self.dbs[db].arena.warm_lines(warm.0, WHOLE_LINES));
        }
    }
}
