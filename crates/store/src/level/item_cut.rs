//! Item cut isolation: a transaction that reads an item again sees the value of its first read. It copies what it
//! reads and keeps the copies until it ends; its writes are those of read committed.

use super::{Spec, read_committed};
use crate::planted::{self, Planted};

pub const LEVEL: Spec = Spec {
    name: "item-cut",
    parts: 1 << 7 | read_committed::LEVEL.parts,
    joins: false,
};

/// Whether the copies of items that were only read are kept.
pub fn keeps() -> bool {
    !planted::is(Planted::ReadsNotCached)
}
