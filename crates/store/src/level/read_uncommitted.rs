//! Read uncommitted: the stamps of all writes of a transaction have the same time and replica, so that every key
//! orders two transactions alike [Anna §VI-C]. Writes are applied at once and cannot be rolled back.

use super::Spec;

pub const LEVEL: Spec = Spec {
    name: "read-uncommitted",
    parts: 1 << 5,
    joins: false,
};
