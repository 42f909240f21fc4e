//! Identifiers of workers and connections.

use std::fmt;

/// A worker thread of this node, counted from zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u16);

impl WorkerId {
    /// The worker's place in arrays that have one element per worker.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Debug for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "w{}", self.0)
    }
}

/// A connection as one worker sees it. The driver reuses `slot` when the
/// connection is gone; `generation` tells the new one from the old, so that
/// a late answer never reaches a stranger.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnId {
    pub slot: u32,
    pub generation: u32,
}

impl ConnId {
    pub fn index(self) -> usize {
        self.slot as usize
    }
}

impl fmt::Debug for ConnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}.{}", self.slot, self.generation)
    }
}
