//! Eventual: replicas that have received the same writes show the same values.

use super::Spec;

pub const LEVEL: Spec = Spec {
    name: "eventual",
    parts: 0,
    joins: false,
};
