//! Read committed: nobody sees a write of a transaction that is not
//! committed, nor one that the transaction replaced later. The session keeps
//! the writes until then, one for each key, and all are done under one stamp.

use super::{Spec, read_uncommitted};
use std::collections::BTreeMap;

pub const LEVEL: Spec = Spec {
    name: "read-committed",
    parts: 1 << 6 | read_uncommitted::LEVEL.parts,
    joins: false,
};

/// What a transaction has written so far: for each key the last write.
#[derive(Clone, Debug)]
pub struct Buffer<K, W> {
    writes: BTreeMap<K, W>,
}

impl<K, W> Default for Buffer<K, W> {
    fn default() -> Self {
        let writes = BTreeMap::new();
        Self { writes }
    }
}

impl<K: Ord, W> Buffer<K, W> {
    pub fn write(&mut self, key: K, write: W) {
        self.writes.insert(key, write);
    }

    /// The transaction sees its own writes.
    pub fn read(&self, key: &K) -> Option<&W> {
        self.writes.get(key)
    }

    /// All of them, to be done now.
    pub fn commit(self) -> impl Iterator<Item = (K, W)> {
        self.writes.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_write_of_a_key_is_done() {
        let mut buffer = Buffer::default();
        for (key, value) in [("a", 1), ("b", 2), ("a", 3)] {
            buffer.write(key, value);
        }
        assert_eq!(buffer.read(&"a"), Some(&3));
        assert_eq!(buffer.read(&"c"), None);
        assert_eq!(buffer.commit().collect::<Vec<_>>(), [("a", 3), ("b", 2)]);
    }
}
