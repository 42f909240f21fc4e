//! Monotonic reads: a session never reads an older state of a key than it has read before. The session keeps what it
//! reads and presents it at every replica that it uses.

use super::Spec;
use crate::planted::{self, Planted};

pub const LEVEL: Spec = Spec {
    name: "monotonic-reads",
    parts: 1 << 1,
    joins: true,
};

/// Whether a session keeps what it reads.
pub fn notes_reads() -> bool {
    !planted::is(Planted::ReadsNotKept)
}
