//! Eventual: whoever has all writes shows the same. A session keeps nothing.

use super::Spec;

pub const LEVEL: Spec = Spec {
    name: "eventual",
    parts: 0,
    joins: false,
};
