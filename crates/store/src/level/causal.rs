//! Causal, per key: a write takes the place of what its session has read of
//! the key, and stands beside what is concurrent with it. Values are dotted
//! version vectors (`Siblings`) instead of registers; a session keeps what it
//! has read, for replicas that lack it, and stamps its writes above that.
//!
//! With `CUT` a keyspace also never shows a write before those that it may
//! depend on: batches wait for what their sender had heard.

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
