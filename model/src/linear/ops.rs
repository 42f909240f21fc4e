//! Operations on keys, and the keys of a slot.

use rufous_linear::{Operation, Part, Stamp, State, TxnId};
use std::collections::BTreeMap;

/// What a transaction does to a key. The key is a list of the transactions that have changed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Adds; the reply does not matter, and neither does the order of adds.
    Add,
    /// Appends, and replies with the length.
    Append,
    /// Reads.
    Read,
}

impl Operation for Op {
    fn is_independent(&self, other: &Self) -> bool {
        matches!((self, other), (Op::Add, Op::Add) | (Op::Read, Op::Read))
    }

    fn writes(&self) -> bool {
        *self != Op::Read
    }
}

/// What was done to a key, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Key {
    pub done: Vec<(TxnId, Part<Op>)>,
    pub version: Option<Stamp>,
}

/// The keys of a slot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Keys(pub BTreeMap<Box<[u8]>, Key>);

impl State<Op> for Keys {
    fn version(&self, key: &[u8]) -> Option<Stamp> {
        self.0.get(key).and_then(|key| key.version)
    }

    fn apply(&mut self, part: &Part<Op>, stamp: Stamp) {
        let key = self.0.entry(part.key.clone()).or_default();
        key.done.push((stamp.txn, part.clone()));
        if part.ops.iter().any(Operation::writes) {
            key.version = Some(stamp);
        }
    }
}
