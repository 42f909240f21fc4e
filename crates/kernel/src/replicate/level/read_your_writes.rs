//! Read your writes: a session sees what it has written, whichever replica it
//! asks. It notes what it has written, and takes it along where it goes.

use super::Spec;
use crate::planted::{self, Planted};
use crate::replicate::session::{Known, Seen};

pub const LEVEL: Spec = Spec {
    name: "read-your-writes",
    parts: 1 << 2,
    joins: true,
};

pub(crate) fn after_write(known: &mut Known, seen: Seen<'_>) {
    if !planted::is(Planted::WritesNotKept) {
        known.note(seen);
    }
}
