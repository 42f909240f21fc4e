//! Watchers of keys: `WATCH`.
//!
//! Any change of a key makes its watchers dirty, and they stay so until they are removed; a touched key is removed
//! from the table at once.

use super::types::Key;
use std::collections::{BTreeMap, BTreeSet};

/// A watcher; unique among those at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchId(pub u64);

/// Database and hash.
type Place = (u8, u32);

#[derive(Debug)]
struct Watched {
    key: Box<[u8]>,
    watchers: BTreeSet<WatchId>,
}

#[derive(Debug, Default)]
struct Watcher {
    dirty: bool,
    /// The places of its keys, including those that were touched since.
    places: BTreeSet<Place>,
}

#[derive(Debug, Default)]
pub struct Watches {
    keys: BTreeMap<Place, Vec<Watched>>,
    watchers: BTreeMap<WatchId, Watcher>,
}

impl Watches {
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(super) fn add(&mut self, place: Place, key: &[u8], id: WatchId) {
        let watcher = self.watchers.entry(id).or_default();
        if watcher.dirty {
            return;
        }
        watcher.places.insert(place);
        let keys = self.keys.entry(place).or_default();
        if let Some(watched) = keys.iter_mut().find(|w| *w.key == *key) {
            watched.watchers.insert(id);
            return;
        }
        keys.push(Watched {
            key: key.into(),
            watchers: BTreeSet::from([id]),
        });
    }

    pub(super) fn forget(&mut self, id: WatchId) {
        let watcher = self.watchers.remove(&id).unwrap_or_default();
        for place in watcher.places {
            let Some(keys) = self.keys.get_mut(&place) else {
                continue;
            };
            keys.retain_mut(|watched| {
                watched.watchers.remove(&id);
                !watched.watchers.is_empty()
            });
            if keys.is_empty() {
                self.keys.remove(&place);
            }
        }
    }

    pub(super) fn touch(&mut self, place: Place, key: &[u8]) {
        self.touch_where(place, |watched| watched == key);
    }

    fn touch_where(&mut self, place: Place, mut is_touched: impl FnMut(&[u8]) -> bool) {
        let Some(keys) = self.keys.get_mut(&place) else {
            return;
        };
        keys.retain(|watched| {
            if !is_touched(&watched.key) {
                return true;
            }
            for id in &watched.watchers {
                if let Some(watcher) = self.watchers.get_mut(id) {
                    watcher.dirty = true;
                }
            }
            false
        });
        if keys.is_empty() {
            self.keys.remove(&place);
        }
    }

    fn places_of(&self, db: usize) -> Vec<Place> {
        let db = db as u8;
        let all = self.keys.range((db, 0)..=(db, u32::MAX));
        all.map(|(&place, _)| place).collect()
    }

    /// Touches the watched keys of a database for which `is_there` returns true.
    pub(super) fn touch_in(&mut self, db: usize, is_there: impl Fn(Key<'_>) -> bool) {
        for place in self.places_of(db) {
            let hash = place.1;
            self.touch_where(place, |bytes| is_there(Key { bytes, hash }));
        }
    }

    /// Whether a key was touched since the watcher watches it. An expired key is touched when it is accessed: access
    /// the watched keys first.
    pub fn is_dirty(&self, id: WatchId) -> bool {
        self.watchers.get(&id).is_some_and(|watcher| watcher.dirty)
    }

    /// Whether the watcher has watched a key with this hash and was not removed since.
    pub fn knows(&self, id: WatchId, db: u8, hash: u32) -> bool {
        let watcher = self.watchers.get(&id);
        watcher.is_some_and(|watcher| watcher.dirty || watcher.places.contains(&(db, hash)))
    }

    /// Number of watchers that watch keys or are dirty.
    pub fn watchers(&self) -> usize {
        self.watchers.len()
    }
}
