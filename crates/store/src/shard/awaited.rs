//! Keys with waiters, and which of them were touched: the basis of commands that wait for data.
//!
//! Every change of such a key puts it on a list, once until it is taken from there. The caller that takes it has to
//! check whether it holds the awaited data.

use super::Shard;
use super::types::Key;
use std::collections::{BTreeMap, VecDeque};

/// Database and hash.
type Place = (u8, u32);

#[derive(Debug)]
struct AwaitedKey {
    key: Box<[u8]>,
    waiters: usize,
    /// Whether it is on the list.
    listed: bool,
}

#[derive(Debug, Default)]
pub(super) struct Awaited {
    keys: BTreeMap<Place, Vec<AwaitedKey>>,
    touched: VecDeque<(u8, Box<[u8]>)>,
}

impl Awaited {
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    fn add(&mut self, place: Place, key: &[u8]) {
        let keys = self.keys.entry(place).or_default();
        if let Some(known) = keys.iter_mut().find(|k| *k.key == *key) {
            known.waiters += 1;
            return;
        }
        keys.push(AwaitedKey {
            key: key.into(),
            waiters: 1,
            listed: false,
        });
    }

    fn forget(&mut self, place: Place, key: &[u8]) {
        let Some(keys) = self.keys.get_mut(&place) else {
            debug_assert!(false, "nobody waits for this key");
            return;
        };
        if let Some(at) = keys.iter().position(|k| *k.key == *key) {
            keys[at].waiters -= 1;
            if keys[at].waiters == 0 {
                keys.swap_remove(at);
            }
        }
        if keys.is_empty() {
            self.keys.remove(&place);
        }
    }

    pub(super) fn touch(&mut self, place: Place, key: &[u8]) {
        let Some(keys) = self.keys.get_mut(&place) else {
            return;
        };
        let found = keys.iter_mut().find(|k| !k.listed && *k.key == *key);
        if let Some(known) = found {
            known.listed = true;
            self.touched.push_back((place.0, known.key.clone()));
        }
    }

    /// Touches all keys of a database.
    pub(super) fn touch_all(&mut self, db: usize) {
        let db = db as u8;
        for (_, keys) in self.keys.range_mut((db, 0)..=(db, u32::MAX)) {
            for known in keys.iter_mut().filter(|k| !k.listed) {
                known.listed = true;
                self.touched.push_back((db, known.key.clone()));
            }
        }
    }
}

impl Shard {
    /// From now on, every change of the key makes [`Shard::next_touched`] return it.
    pub fn await_key(&mut self, db: u8, key: Key<'_>) {
        self.env.awaited.add((db, key.hash), key.bytes);
        self.env.update_observed();
    }

    /// Undoes one [`Shard::await_key`].
    pub fn forget_key(&mut self, db: u8, key: Key<'_>) {
        self.env.awaited.forget((db, key.hash), key.bytes);
        self.env.update_observed();
    }

    /// Puts an awaited key on the list as if it had been changed.
    pub fn touch_awaited(&mut self, db: u8, key: Key<'_>) {
        self.env.awaited.touch((db, key.hash), key.bytes);
    }

    /// Whether any awaited keys were changed.
    #[inline]
    pub fn has_touched(&self) -> bool {
        !self.env.awaited.touched.is_empty()
    }

    /// Takes the awaited key that was changed first.
    pub fn next_touched(&mut self) -> Option<(u8, Box<[u8]>)> {
        let (db, bytes) = self.env.awaited.touched.pop_front()?;
        let place = (db, self.key(&bytes).hash);
        let keys = self.env.awaited.keys.get_mut(&place);
        if let Some(known) = keys.and_then(|keys| keys.iter_mut().find(|k| k.key == bytes)) {
            known.listed = false;
        }
        Some((db, bytes))
    }

    /// Number of awaited keys.
    pub fn awaited_keys(&self) -> usize {
        self.env.awaited.keys.values().map(Vec::len).sum()
    }
}
