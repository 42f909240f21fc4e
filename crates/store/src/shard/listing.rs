//! Which keys a list of keys has: `KEYS`, `SCAN` and `DBSIZE` list a lattice key at the one replica that the asking
//! connection reads and writes, so that it finds its own writes at once, and each key once.

use rufous_base::WorkerId;

/// Of lattice keys, those of which slots are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slots {
    All,
    /// Those that workers of this node answer for.
    Own,
}

/// The keys of a list. Strict keys are those of slots that this node answers for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listing {
    pub has_strict: bool,
    /// The lattice keys whose replica at the asked worker serves the connections of a worker.
    pub lattice: Option<(WorkerId, Slots)>,
}

impl Listing {
    /// Strict keys alone.
    pub const STRICT: Self = Self {
        has_strict: true,
        lattice: None,
    };
}

/// A step of a walk over the listed keys of one database; see `Shard::scan`.
#[derive(Clone, Copy, Debug)]
pub struct ListStep {
    pub db: usize,
    pub cursor: u32,
    pub count: usize,
    pub listing: Listing,
}
