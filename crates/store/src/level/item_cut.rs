//! Item cut isolation: a transaction that reads an item again sees what it saw
//! the first time. It copies what it reads, and the copies stay until it ends;
//! writes are those of read committed.

use super::{Spec, read_committed};
use crate::planted::{self, Planted};

pub const LEVEL: Spec = Spec {
    name: "item-cut",
    parts: 1 << 7 | read_committed::LEVEL.parts,
    joins: false,
};

/// Whether copies of what was only read stay.
pub fn keeps() -> bool {
    !planted::is(Planted::ReadsNotCached)
}
