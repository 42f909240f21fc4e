//! Monotonic reads: what a session reads of a key never is older than what it
//! has read of it. The session notes what it reads, and takes it along where it
//! goes.

use super::Spec;
use crate::planted::{self, Planted};
use crate::replicate::session::{Known, Seen};

pub const LEVEL: Spec = Spec {
    name: "monotonic-reads",
    parts: 1 << 1,
    joins: true,
};

pub(crate) fn after_read(known: &mut Known, seen: Seen<'_>) {
    if !planted::is(Planted::ReadsNotKept) {
        known.note(seen);
    }
}
