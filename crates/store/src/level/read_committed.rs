//! Read committed: nobody sees a write of a transaction that is not
//! committed, nor one that the transaction replaced later. Its writes are done
//! on copies, where it reads them, too, and when it is committed on data: all
//! of them in one step, and under one stamp.

use super::{Spec, read_uncommitted};
use crate::planted::{self, Planted};

pub const LEVEL: Spec = Spec {
    name: "read-committed",
    parts: 1 << 6 | read_uncommitted::LEVEL.parts,
    joins: false,
};

/// Whether a command is for the transaction's eyes only; `is_own`: it names
/// what the transaction has a copy of.
pub fn waits(writes: bool, is_own: bool) -> bool {
    let at_once = planted::is(Planted::DoneAtOnce) && planted::now_and_then();
    (writes || is_own) && !at_once
}
