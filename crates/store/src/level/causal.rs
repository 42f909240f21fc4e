//! Causal, per key: a write replaces the values of the key that its session has read, and becomes a sibling of the
//! concurrent ones. Values are dotted version vectors (`Siblings`) instead of registers.
//!
//! A write is never shown before those that it may depend on: a batch waits until the receiver has everything that its sender had
//! received ([`super::Level::is_ordered`]).

use super::{Spec, monotonic_reads, monotonic_writes, read_your_writes, writes_follow_reads};

pub const LEVEL: Spec = Spec {
    name: "causal",
    parts: 1
        | monotonic_reads::LEVEL.parts
        | monotonic_writes::LEVEL.parts
        | writes_follow_reads::LEVEL.parts
        | read_your_writes::LEVEL.parts,
    joins: false,
};
