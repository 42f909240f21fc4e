//! Item cut isolation: a transaction that reads an item again sees what it saw
//! the first time. The session keeps what it reads until the transaction ends;
//! writes are those of read committed.

use super::{Spec, read_committed};
use crate::planted::{self, Planted};
use std::collections::BTreeMap;

pub const LEVEL: Spec = Spec {
    name: "item-cut",
    parts: 1 << 7 | read_committed::LEVEL.parts,
    joins: false,
};

/// What a transaction has read so far.
#[derive(Clone, Debug)]
pub struct Cache<K, V> {
    seen: BTreeMap<K, V>,
}

impl<K, V> Default for Cache<K, V> {
    fn default() -> Self {
        let seen = BTreeMap::new();
        Self { seen }
    }
}

impl<K: Ord, V> Cache<K, V> {
    /// What was read of the key; the first time, what `read` says.
    pub fn read(&mut self, key: K, read: impl FnOnce() -> V) -> &V {
        if planted::is(Planted::ReadsNotCached) {
            self.seen.remove(&key);
        }
        self.seen.entry(key).or_insert_with(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_asked_for_once() {
        let mut cache = Cache::default();
        assert_eq!(cache.read("a", || 1), &1);
        assert_eq!(cache.read("a", || 2), &1);
        assert_eq!(cache.read("b", || 2), &2);
    }
}
