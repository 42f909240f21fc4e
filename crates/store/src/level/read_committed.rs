//! Read committed: no client sees a write of a transaction that has not committed, nor a write that the same
//! transaction replaced later. A transaction writes to copies and reads its own writes there. Its commit applies all
//! of them to the data in one step, under one stamp.

use super::{Spec, read_uncommitted};
use crate::planted::{self, Planted};

pub const LEVEL: Spec = Spec {
    name: "read-committed",
    parts: 1 << 6 | read_uncommitted::LEVEL.parts,
    joins: false,
};

/// Whether a command runs on the transaction's copies only; `is_own`: it names a key that the transaction has a copy
/// of.
pub fn waits(writes: bool, is_own: bool) -> bool {
    let at_once = planted::is(Planted::DoneAtOnce) && planted::now_and_then();
    (writes || is_own) && !at_once
}
