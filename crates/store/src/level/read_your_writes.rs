//! Read your writes: a session sees its own writes. A connection reads the replica that it writes.

use super::Spec;

pub const LEVEL: Spec = Spec {
    name: "read-your-writes",
    parts: 1 << 2,
    joins: true,
};
