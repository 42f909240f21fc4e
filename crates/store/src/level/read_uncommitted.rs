//! Read uncommitted: the stamps of all writes of a transaction have the same time and replica, so that every key
//! orders two transactions alike [Anna §VI-C]. Writes are applied at once and cannot be rolled back.

use super::{Level, Spec, read_committed};

pub const LEVEL: Spec = Spec {
    name: "read-uncommitted",
    parts: 1 << 5,
    joins: false,
};

/// Whether a transaction of this level writes to the data at once.
pub fn writes_at_once(level: Level) -> bool {
    !level.has(&read_committed::LEVEL)
}
