//! One connection to another node.

use super::clocks;
use super::parked::Parked;
use crate::figures::Traffic;
use crate::peer::Session;
use rufous_base::limits::{HEARING_US, SILENCE_US};
use rufous_base::{ConnId, Now};
use rufous_mapping::{Mapping, NodeNo};
use std::sync::Arc;

/// One connection.
pub(super) struct Link {
    pub(super) conn: ConnId,
    pub(super) wire: rufous_wire::Session,
    /// Its address, for the log.
    pub(super) address: String,
    /// Of the peer, under TLS (DER).
    pub(super) certificate: Option<Arc<[u8]>>,
    /// The node that it was dialled for.
    pub(super) dialled: Option<NodeNo>,
    /// Set once the session is established.
    pub(super) up: Option<Up>,
    pub(super) opened_us: u64,
    pub(super) heard_us: u64,
    pub(super) beat_us: u64,
    /// When it was refused.
    pub(super) refused_us: Option<u64>,
    /// Bytes given to the driver that it has not reported as sent.
    pub(super) unsent: usize,
    /// The rest of a message that the driver has a part of, and how much of the rest it has been
    /// given since.
    pub(super) rest: (Vec<u8>, usize),
    /// Messages that wait for room.
    pub(super) parked: Parked,
    pub(super) traffic: Traffic,
    pub(super) clock: clocks::Known,
}

/// The node at the other end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Up {
    pub(super) no: NodeNo,
    pub(super) session: Session,
    pub(super) incarnation: u64,
    /// The wire version in use.
    pub(super) version: u16,
    /// The newest epoch that the node has named.
    pub(super) epoch: u64,
}

impl Link {
    /// Whether the session ends as the node has sent nothing for so long. A node without slots is given less time: other
    /// nodes have replaced it, and requests that it has not answered need not wait for it.
    pub(super) fn is_lost(&self, now: Now, mapping: Option<&Mapping>) -> bool {
        let silent_us = now.mono_us.saturating_sub(self.heard_us);
        let is_replaced = |up: Up| mapping.is_some_and(|mapping| !mapping.chains.name(up.no));
        silent_us >= SILENCE_US || (silent_us >= HEARING_US && self.up.is_some_and(is_replaced))
    }

    /// Appends the rest of a message, up to `room` bytes.
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
