//! Read your writes: a session sees what it has written, whichever replica it
//! asks. It notes what it has written, and takes it along where it goes.

use super::Spec;
use crate::planted::{self, Planted};

pub const LEVEL: Spec = Spec {
    name: "read-your-writes",
    parts: 1 << 2,
    joins: true,
};

/// Whether a session notes what it writes.
pub fn notes_writes() -> bool {
    !planted::is(Planted::WritesNotKept)
}
