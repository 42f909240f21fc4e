//! One connection to another node.

use super::clocks;
use super::parked::Parked;
use crate::figures::Traffic;
use crate::peer::Session;
use rufous_base::ConnId;
use rufous_mapping::NodeNo;

/// One connection.
pub(super) struct Link {
    pub(super) conn: ConnId,
    pub(super) wire: rufous_wire::Session,
    /// Where it is, for the log.
    pub(super) address: String,
    /// Whom it was dialled to reach.
    pub(super) dialled: Option<NodeNo>,
    /// Once it is up.
    pub(super) up: Option<Up>,
    pub(super) opened_us: u64,
    pub(super) heard_us: u64,
    pub(super) beat_us: u64,
    /// When it was refused.
    pub(super) refused_us: Option<u64>,
    /// Bytes given to the driver since it said that they have left.
    pub(super) unsent: usize,
    /// Of a message the driver has a part: all that is behind it, and how much of
    /// that it has been given since.
    pub(super) rest: (Vec<u8>, usize),
    /// What waits for room.
    pub(super) parked: Parked,
    pub(super) traffic: Traffic,
    pub(super) clock: clocks::Known,
}

/// What is known of the node at the other end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Up {
    pub(super) no: NodeNo,
    pub(super) session: Session,
    pub(super) incarnation: u64,
    /// The wire version that is spoken with it.
    pub(super) version: u16,
    /// The newest epoch that it has named.
    pub(super) epoch: u64,
}

impl Link {
    /// Appends what is left of a message, up to `room` bytes.
    pub(super) fn give_rest(&mut self, room: usize, out: &mut Vec<u8>) {
        let (bytes, at) = &mut self.rest;
        let end = bytes.len().min(at.saturating_add(room));
        out.extend_from_slice(&bytes[*at..end]);
        *at = end;
        if end == bytes.len() {
            self.rest = (Vec::new(), 0);
        }
    }
}
