//! Monotonic reads: what a session reads of a key never is older than what it
//! has read of it. The session notes what it reads, and takes it along where it
//! goes.

use super::Spec;
use crate::planted::{self, Planted};

pub const LEVEL: Spec = Spec {
    name: "monotonic-reads",
    parts: 1 << 1,
    joins: true,
};

/// Whether a session notes what it reads.
pub fn notes_reads() -> bool {
    !planted::is(Planted::ReadsNotKept)
}
