//! Writes follow reads: a session's writes take effect after everything that it had read before, at every replica:
//! each has a stamp above all of that.

use super::Spec;
use crate::planted::{self, Planted};

pub const LEVEL: Spec = Spec {
    name: "writes-follow-reads",
    parts: 1 << 4,
    joins: true,
};

/// The lower bound of the stamp of the session's next write.
pub fn after_read(floor: u64, newest: u64) -> u64 {
    match planted::is(Planted::NotAboveReads) {
        true => floor,
        false => floor.max(newest),
    }
}
