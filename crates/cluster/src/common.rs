//! The cluster state that all workers of a node share.

use crate::health::Board;
use crate::links::clocks::Far;
use crate::reports::Reports;
use crate::rooms::Rooms;
use rufous_wire::{Local, Peers};

/// See the module's description.
#[derive(Debug)]
pub struct Common {
    /// How this node introduces itself to others.
    pub local: Local,
    pub peers: Peers,
    pub rooms: Rooms,
    pub reports: Reports,
    pub health: Board,
    /// Nodes whose clocks are far from this node's.
    pub far: Far,
}

impl Common {
    pub fn new(local: Local) -> Self {
        Self {
            local,
            peers: Peers::default(),
            rooms: Rooms::default(),
            reports: Reports::default(),
            health: Board::default(),
            far: Far::default(),
        }
    }
}
