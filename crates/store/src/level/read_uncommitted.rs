//! Read uncommitted: all writes of a transaction have the same time and
//! replica in their stamps, so that every key orders two transactions alike
//! [Anna §VI-C]. They are done at once, and can't be taken back.

use super::Spec;

pub const LEVEL: Spec = Spec {
    name: "read-uncommitted",
    parts: 1 << 5,
    joins: false,
};
