//! Monotonic writes: a session's writes take effect in the order in which it made them, at every replica. Each has a
//! stamp above the last one, and replicas apply the writes of an epoch together, after those that they may depend on: the session
//! may have made its earlier ones at another worker.

use super::Spec;

pub const LEVEL: Spec = Spec {
    name: "monotonic-writes",
    parts: 1 << 3,
    joins: true,
};
