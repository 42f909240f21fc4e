//! Monotonic reads: a session never reads an older state of a key than it has read before. A connection reads the same
//! replica of a key as long as it lives.

use super::Spec;

pub const LEVEL: Spec = Spec {
    name: "monotonic-reads",
    parts: 1 << 1,
    joins: true,
};
