//! Monotonic writes: a session's writes take effect in the order in which it made them, at every replica. Each has a
//! stamp above the last one, and replicas apply the writes of an epoch together.

use super::Spec;

pub const LEVEL: Spec = Spec {
    name: "monotonic-writes",
    parts: 1 << 3,
    joins: true,
};
