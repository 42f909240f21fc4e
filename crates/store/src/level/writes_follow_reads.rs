//! Writes follow reads: a session's writes take effect after what it has read
//! before them, everywhere: each has a stamp above all of that.

use super::Spec;
use crate::planted::{self, Planted};

pub const LEVEL: Spec = Spec {
    name: "writes-follow-reads",
    parts: 1 << 4,
    joins: true,
};

/// What the session's next write must be stamped above.
pub fn after_read(floor: u64, newest: u64) -> u64 {
    match planted::is(Planted::NotAboveReads) {
        true => floor,
        false => floor.max(newest),
    }
}
