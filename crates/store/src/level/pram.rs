//! PRAM: each session's operations are seen in its order by all. It is the combination of monotonic reads, monotonic
//! writes and read your writes [HAT §5.1.3].

use super::{Spec, monotonic_reads, monotonic_writes, read_your_writes};

pub const LEVEL: Spec = Spec {
    name: "pram",
    parts: monotonic_reads::LEVEL.parts
        | monotonic_writes::LEVEL.parts
        | read_your_writes::LEVEL.parts,
    joins: true,
};
