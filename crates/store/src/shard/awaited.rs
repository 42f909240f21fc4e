//! Keys with waiters, and which of them were touched: the basis of commands that wait for data.
//!
//! Every change of such a key puts it on a list, once until it is taken from there. The caller that takes it has to
//! check whether it holds the awaited data.

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
    touched: VecDeque<(Place, Box<[u8]>)>,
}

impl Awaited {
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(super) fn add(&mut self, place: Place, key: &[u8]) {
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

    pub(super) fn forget(&mut self, place: Place, key: &[u8]) {
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
            self.touched.push_back((place, known.key.clone()));
        }
    }

    /// Touches all keys of a database.
    pub(super) fn touch_all(&mut self, db: usize) {
        let db = db as u8;
        for (&place, keys) in self.keys.range_mut((db, 0)..=(db, u32::MAX)) {
            for known in keys.iter_mut().filter(|k| !k.listed) {
                known.listed = true;
                self.touched.push_back((place, known.key.clone()));
            }
        }
    }

    #[inline]
    pub(super) fn has_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    /// Takes the key that was changed first.
    pub(super) fn next_touched(&mut self) -> Option<(u8, Box<[u8]>)> {
        let (place, bytes) = self.touched.pop_front()?;
        let keys = self.keys.get_mut(&place);
        if let Some(known) = keys.and_then(|keys| keys.iter_mut().find(|k| k.key == bytes)) {
            known.listed = false;
        }
        Some((place.0, bytes))
    }

    /// Number of awaited keys.
    pub(super) fn len(&self) -> usize {
        self.keys.values().map(Vec::len).sum()
    }
}
