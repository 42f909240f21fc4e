//! What a worker has changed on its replicas since it last told the others:
//! each key once, however often it was written. This is where updates are
//! merged at the sender [Anna §V]: a key that was written a thousand times in
//! an epoch is sent once.
//!
//! The shard calls it for every own change of a replicated value, and for
//! nothing that came from elsewhere: who merges a batch does not send it on.
//! Small types ([`Changeset::touch`]) are sent as they are when the epoch ends;
//! of collections only what was done to them ([`Changeset::add`]), merged into
//! a value of the same type.
//!
//! Nothing is allocated for a key that is in it already, and little for another:
//! names lie one after the other in a buffer that is used again.

use crate::shard::{Key, equal};
use rufous_datatype::algebra::{Corrupt, Tuning};
use rufous_datatype::object::{Object, Tag};
use std::ops::Range;

/// Buffers of up to so many bytes are kept for the next epoch, and larger ones
/// up to so many while a quarter of them is used.
const KEEP_BYTES: usize = 1 << 20;
const KEEP_USED_BYTES: usize = 8 << 20;

/// See the module's description.
#[derive(Debug, Default)]
pub struct Changeset {
    entries: Vec<Entry>,
    /// Numbers of entries plus one at the places of their hashes; 0 is free.
    /// Its length is a power of two, and at most half of it is used.
    places: Vec<u32>,
    names: Vec<u8>,
    /// What the deltas take on the heap, about.
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
    /// What was done to it; `None`: all of it is to be sent.
    pub delta: Option<&'a Object>,
}

/// What a delta takes on the heap, about.
fn bytes_of(delta: &Object) -> usize {
    delta.heap_bytes() + delta.packed().map_or(0, <[u8]>::len)
}

impl Changeset {
    /// The key has changed: its whole state is to be sent. Returns the number
    /// of its entry, a guess for [`Changeset::touch_again`].
    #[inline]
    pub fn touch(&mut self, db: u8, key: Key<'_>) -> u32 {
        self.updates += 1;
        let at = self.entry(db, key, || None);
        if self.entries[at].delta.is_some() {
            self.drop_delta(at);
        }
        at as u32
    }

    /// Likewise, without looking for it, where entry `at` is the key's and all of
    /// it is to be sent already; elsewhere does nothing and says no.
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

    /// So many writes were merged with later ones before these were made.
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

    /// These encoded operations of type `tag` were committed to the key.
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
        // Without a delta all of it is sent, these operations included.
        let Some(delta) = &mut self.entries[at].delta else {
            return Ok(());
        };
        if delta.tag() != tag {
            // It has become another value: that is sent whole.
            self.touch(db, key);
            self.updates -= 1;
            return Ok(());
        }
        let before = bytes_of(delta);
        let done = delta.commit_encoded(ops, tuning);
        self.delta_bytes = (self.delta_bytes + bytes_of(delta)).saturating_sub(before);
        done
    }

    /// The entry of a key; a new one gets the delta that `delta` makes.
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

    /// Keys that have changed.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How often keys were changed; never fewer than [`Changeset::len`].
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// What it takes, about.
    pub fn bytes(&self) -> usize {
        let entries = self.entries.capacity() * size_of::<Entry>();
        self.names.capacity() + entries + self.places.capacity() * 4 + self.delta_bytes
    }

    /// In the order of their first change.
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

    /// Forgets what has changed, and keeps the room for the next epoch.
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

    /// Forgets what has changed in one database.
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
