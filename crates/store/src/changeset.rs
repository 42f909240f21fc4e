//! The keys that a worker has changed on its replicas since it last sent changes to the others: each key once,
//! however often it was written. Updates are merged here, at the sender [Anna §V]: a key that was written a thousand
//! times in an epoch is sent once.
//!
//! The shard records every local change of a replicated value here, and no change that was received: the receiver of
//! a batch does not forward it. Values of small types ([`Changeset::touch`]) are sent in the state that they have
//! when the epoch ends; of collections only the operations ([`Changeset::add`]) are sent, merged into a value of the
//! same type.
//!
//! A key that is already recorded costs no allocation, and another key a small one: names lie one after the other in
//! a buffer that is reused.

use crate::shard::{Key, equal};
use rufous_datatype::algebra::{Corrupt, Tuning};
use rufous_datatype::object::{Object, Tag};
use std::ops::Range;

/// Buffers of up to this many bytes are kept for the next epoch; larger ones, up to the second limit, only while a
/// quarter of them is used.
const KEEP_BYTES: usize = 1 << 20;
const KEEP_USED_BYTES: usize = 8 << 20;

/// See the module's description.
#[derive(Debug, Default)]
pub struct Changeset {
    entries: Vec<Entry>,
    /// A hash table of entry numbers plus one; 0 is free. Its length is a power of two, and at most half of it is
    /// used.
    places: Vec<u32>,
    names: Vec<u8>,
    /// Approximate heap bytes of the deltas.
    delta_bytes: usize,
    updates: u64,
}

#[derive(Debug)]
struct Entry {
    db: u8,
    hash: u32,
    name: (usize, usize),
    delta: Option<Box<Object>>,
}

/// A key that has changed.
#[derive(Clone, Copy, Debug)]
pub struct Changed<'a> {
    pub db: u8,
    pub key: Key<'a>,
    /// The operations on it, merged; `None`: its whole state is to be sent.
    pub delta: Option<&'a Object>,
}

/// Approximate heap bytes of a delta.
fn bytes_of(delta: &Object) -> usize {
    delta.heap_bytes() + delta.packed().map_or(0, <[u8]>::len)
}

impl Changeset {
    /// Records that the key has changed and its whole state is to be sent. Returns the number of its entry, a guess
    /// for [`Changeset::touch_again`].
    #[inline]
    pub fn touch(&mut self, db: u8, key: Key<'_>) -> u32 {
        self.updates += 1;
        let at = self.entry(db, key, || None);
        if self.entries[at].delta.is_some() {
            self.drop_delta(at);
        }
        at as u32
    }

    /// Like [`Changeset::touch`], without a lookup, if entry `at` belongs to the key and its whole state is to be
    /// sent already. Otherwise does nothing and returns false.
    #[inline(always)]
    pub fn touch_again(&mut self, at: u32, db: u8, key: Key<'_>) -> bool {
        let Some(entry) = self.entries.get(at as usize) else {
            return false;
        };
        let name = self.names.get(entry.name.0..entry.name.1);
        let is_it = entry.db == db
            && entry.delta.is_none()
            && name.is_some_and(|name| equal(name, key.bytes));
        self.updates += u64::from(is_it);
        is_it
    }

    /// Counts this many writes that were merged with later ones before those were recorded.
    #[inline(always)]
    pub fn joined(&mut self, writes: u64) {
        self.updates += writes;
    }

    #[cold]
    fn drop_delta(&mut self, at: usize) {
        if let Some(delta) = self.entries[at].delta.take() {
            self.delta_bytes = self.delta_bytes.saturating_sub(bytes_of(&delta));
        }
    }

    /// Records that these encoded operations of type `tag` were committed to the key.
    pub fn add(
        &mut self,
        db: u8,
        key: Key<'_>,
        tag: Tag,
        ops: &[u8],
        tuning: &Tuning,
    ) -> Result<(), Corrupt> {
        self.updates += 1;
        let at = self.entry(db, key, || Some(Box::new(tag.empty())));
        // Without a delta the whole state is sent, which includes these operations.
        let Some(delta) = &mut self.entries[at].delta else {
            return Ok(());
        };
        if delta.tag() != tag {
            // The value has changed its type: its whole state is sent.
            self.touch(db, key);
            self.updates -= 1;
            return Ok(());
        }
        let before = bytes_of(delta);
        let done = delta.commit_encoded(ops, tuning);
        self.delta_bytes = (self.delta_bytes + bytes_of(delta)).saturating_sub(before);
        done
    }

    /// The entry of a key; a new entry gets the delta that `delta` makes.
    #[inline]
    fn entry(
        &mut self,
        db: u8,
        key: Key<'_>,
        delta: impl FnOnce() -> Option<Box<Object>>,
    ) -> usize {
        if self.entries.len() * 2 >= self.places.len() {
            self.grow();
        }
        let mask = self.places.len() - 1;
        let mut place = key.hash as usize & mask;
        while let Some(at) = self.places[place].checked_sub(1) {
            let entry = &self.entries[at as usize];
            let same = entry.hash == key.hash && entry.db == db;
            if same && equal(&self.names[entry.name.0..entry.name.1], key.bytes) {
                return at as usize;
            }
            place = (place + 1) & mask;
        }
        self.enter(db, key, place, delta())
    }

    #[inline(never)]
    fn enter(&mut self, db: u8, key: Key<'_>, place: usize, delta: Option<Box<Object>>) -> usize {
        let start = self.names.len();
        self.names.extend_from_slice(key.bytes);
        self.entries.push(Entry {
            db,
            hash: key.hash,
            name: (start, self.names.len()),
            delta,
        });
        self.places[place] = self.entries.len() as u32;
        self.entries.len() - 1
    }

    #[cold]
    fn grow(&mut self) {
        let len = (self.places.len() * 2).max(16);
        self.places.clear();
        self.places.resize(len, 0);
        for (at, entry) in self.entries.iter().enumerate() {
            let mut place = entry.hash as usize & (len - 1);
            while self.places[place] != 0 {
                place = (place + 1) & (len - 1);
            }
            self.places[place] = at as u32 + 1;
        }
    }

    /// Number of keys that have changed.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of recorded changes; never less than [`Changeset::len`].
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// Approximate memory in bytes.
    pub fn bytes(&self) -> usize {
        let entries = self.entries.capacity() * size_of::<Entry>();
        self.names.capacity() + entries + self.places.capacity() * 4 + self.delta_bytes
    }

    /// The entry at this index; entries are in the order of their first change.
    pub fn get(&self, at: usize) -> Option<Changed<'_>> {
        let entry = self.entries.get(at)?;
        let name: Range<usize> = entry.name.0..entry.name.1;
        Some(Changed {
            db: entry.db,
            key: Key {
                bytes: &self.names[name],
                hash: entry.hash,
            },
            delta: entry.delta.as_deref(),
        })
    }

    pub fn iter(&self) -> impl Iterator<Item = Changed<'_>> {
        (0..self.entries.len()).filter_map(|at| self.get(at))
    }

    /// Empties the changeset and keeps its buffers for the next epoch.
    pub fn clear(&mut self) {
        let bytes = self.bytes();
        let used = self.names.len() + self.entries.len() * size_of::<Entry>();
        let is_used = bytes <= KEEP_USED_BYTES && used >= bytes / 4;
        if bytes > KEEP_BYTES && !is_used {
            *self = Self::default();
            return;
        }
        self.entries.clear();
        self.names.clear();
        self.places.fill(0);
        self.delta_bytes = 0;
        self.updates = 0;
    }

    /// Forgets the changes of one database.
    pub fn forget_db(&mut self, db: u8) {
        let old = std::mem::take(self);
        let kept = old.entries.into_iter().filter(|entry| entry.db != db);
        for entry in kept {
            let (start, end) = entry.name;
            let key = Key {
                bytes: &old.names[start..end],
                hash: entry.hash,
            };
            self.delta_bytes += entry.delta.as_ref().map_or(0, |delta| bytes_of(delta));
            self.entry(entry.db, key, || entry.delta);
            self.updates += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::Shard;
    use rufous_base::rng::Rng;
    use std::collections::BTreeMap;

    fn key(shard: &Shard, n: u64) -> Vec<u8> {
        let name = format!("key:{n}").into_bytes();
        debug_assert_eq!(shard.key(&name).bytes, name);
        name
    }

    #[test]
    fn every_key_is_there_once_however_often_it_changes() {
        let shard = Shard::new(5);
        let (mut changes, mut rng) = (Changeset::default(), Rng::new(3));
        for round in 0..3 {
            let mut model = BTreeMap::new();
            for _ in 0..5000 {
                let (db, n) = (rng.below(3) as u8, rng.below(700 * (round + 1)));
                let name = key(&shard, n);
                changes.touch(db, shard.key(&name));
                *model.entry((db, name)).or_insert(0) += 1;
            }
            assert_eq!(changes.updates(), 5000);
            assert_eq!(changes.len(), model.len());
            let seen: BTreeMap<_, _> = changes
                .iter()
                .map(|c| ((c.db, c.key.bytes.to_vec()), c.key.hash))
                .collect();
            assert!(seen.keys().eq(model.keys()));
            for ((_, name), hash) in seen {
                assert_eq!(shard.key(&name).hash, hash);
            }
            changes.forget_db(1);
            assert!(changes.iter().all(|c| c.db != 1));
            assert_eq!(changes.len(), model.keys().filter(|k| k.0 != 1).count());
            changes.clear();
            assert!(changes.is_empty() && changes.updates() == 0);
        }
    }

    #[test]
    fn a_key_in_it_costs_no_memory_again() {
        let shard = Shard::new(5);
        let mut changes = Changeset::default();
        changes.touch(0, shard.key(b"hot"));
        let bytes = changes.bytes();
        for _ in 0..10_000 {
            changes.touch(0, shard.key(b"hot"));
        }
        assert_eq!((changes.len(), changes.bytes()), (1, bytes));
        assert_eq!(changes.updates(), 10_001);
    }
}
