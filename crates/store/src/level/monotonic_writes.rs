//! Monotonic writes: a session's writes take effect in the order in which it made them, at every replica. Each has a
//! stamp above the last one, and replicas apply the writes of an epoch together.

use super::Spec;
use crate::planted::{self, Planted};

pub const LEVEL: Spec = Spec {
    name: "monotonic-writes",
    parts: 1 << 3,
    joins: true,
};

/// The lower bound of the stamp of the session's next write.
pub fn after_write(floor: u64, written: u64) -> u64 {
    match planted::is(Planted::NotAboveOwnWrites) {
        true => floor,
        false => floor.max(written),
    }
}
