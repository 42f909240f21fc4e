//! Writes follow reads: a session's writes take effect after everything that it had read before, at every replica:
//! each has a stamp above all that its replica has received, and others apply it after all of that.

use super::Spec;

pub const LEVEL: Spec = Spec {
    name: "writes-follow-reads",
    parts: 1 << 4,
    joins: true,
};
