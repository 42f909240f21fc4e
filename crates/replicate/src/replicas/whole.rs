//! While another node lacks state, the first change of a key in its stream is sent as the key's whole state: a reader
//! there does not see the change without what it may depend on. Later ones are sent as operations again, which is
//! what makes the stream of a large collection under many writes short enough to be received.
//!
//! What is sent whole is bounded. Of the keys beyond that, changes are sent as operations, and the repair sends their
//! state.

use rufous_base::Now;
use rufous_store::changeset::Changed;
use rufous_store::shard::Shard;
use std::collections::BTreeSet;

/// Bytes of states that are sent for changes of one stream: a quarter of what a stream may keep.
const MOST_BYTES: usize = 4 << 20;

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Whole {
    /// What may be sent yet; `None`: every node has all state.
    left: Option<usize>,
    sent: BTreeSet<(u8, Box<[u8]>)>,
}

impl Whole {
    /// A stream begins: what was sent before is not part of it.
    pub(super) fn begin(&mut self) {
        self.left = Some(MOST_BYTES);
        self.sent.clear();
    }

    /// Every node with a stream has all state.
    pub(super) fn end(&mut self) {
        if self.left.take().is_some() {
            self.sent = BTreeSet::new();
        }
    }

    /// Whether a change is sent as a whole state.
    pub(super) fn takes(&mut self, now: Now, changed: Changed<'_>, shard: &mut Shard) -> bool {
        let Some(left) = &mut self.left else {
            return false;
        };
        let name = (changed.db, Box::from(changed.key.bytes));
        let bytes = shard.memory_of(usize::from(changed.db), changed.key, now);
        let bytes = bytes.unwrap_or(0) + changed.key.bytes.len();
        if bytes > *left || self.sent.contains(&name) {
            return false;
        }
        *left -= bytes;
        self.sent.insert(name)
    }
}
