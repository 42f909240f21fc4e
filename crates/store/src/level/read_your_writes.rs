//! Read your writes: a session sees its own writes at every replica. It keeps what it has written and presents it at
//! every replica that it uses.

use super::Spec;
use crate::planted::{self, Planted};

pub const LEVEL: Spec = Spec {
    name: "read-your-writes",
    parts: 1 << 2,
    joins: true,
};

/// Whether a session keeps what it writes.
pub fn notes_writes() -> bool {
    !planted::is(Planted::WritesNotKept)
}
