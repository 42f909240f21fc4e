//! A request for another node: what it is about, its attempts, and the part of its reply that is here.

use super::waits::{Over, Patience};
use crate::way::{Routing, Way};
use rufous_base::limits::OUTPUT_HARD_LIMIT;
use rufous_base::{ConnId, Output};
use rufous_kernel::Header;
use rufous_mapping::NodeNo;
use rufous_resp::reply::is_error;
use rufous_wire::Bytes;
use rufous_wire::message::Reply;
use std::sync::Arc;

/// A connection, and the number of a request on it.
pub(super) type Place = (u32, u32, u32);

/// What a request is about, which says where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The slots of its keys; `None`: a key that every node serves.
    Slots(Vec<Option<u16>>),
    /// All keys of that node.
    Node(NodeNo),
}

/// A request to be forwarded.
#[derive(Clone, Debug)]
pub struct Forwarded {
    pub header: Header,
    /// Its words, as a client writes them.
    pub words: Bytes,
    pub goal: Goal,
    pub writes: bool,
    /// That of a blocking command.
    pub patience: Option<Patience>,
}

/// A request in flight, or waiting to be sent again.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) request: Forwarded,
    /// Its place among all requests that this worker has forwarded.
    pub(super) order: u64,
    /// The round of its node when it was pushed.
    pub(super) round: u64,
    /// How often it was not executed.
    pub(super) tries: u32,
    /// When it is given up; 0: it has not had to be sent again.
    pub(super) until_us: u64,
    /// When it is given up, as its node has left the chains of its keys; 0: it has not.
    pub(super) left_us: u64,
    /// The part of its reply that has arrived.
    pub(super) part: Vec<u8>,
    /// The other node has reported that it waits for data.
    pub(super) waits: bool,
    pub(super) over: Option<Over>,
}

impl Goal {
    /// The location of the keys now.
    pub(super) fn way<R: Fn(NodeNo) -> bool>(&self, routing: &Routing<'_, R>) -> Way {
        match self {
            Self::Slots(slots) => routing.to_slots(slots.iter().copied()),
            Self::Node(no) => routing.to_node(*no),
        }
    }
}

impl Asked {
    /// Adds a part of the reply. False if it becomes too long.
    pub(super) fn grow(&mut self, reply: &Reply) -> bool {
        let fits = self.part.len() + reply.bytes.len() <= OUTPUT_HARD_LIMIT;
        if fits {
            self.part.extend_from_slice(&reply.bytes);
        }
        fits
    }

    /// The reply, of which this is the last part.
    pub(super) fn whole(mut self, last: &Reply) -> Output {
        let mut out = Output::default();
        let first = if self.part.is_empty() {
            &last.bytes[..]
        } else {
            &self.part
        };
        if is_error(first) {
            out.begin_error();
        }
        if self.part.is_empty() {
            out.bytes.extend_from_slice(&last.bytes);
        } else {
            self.part.extend_from_slice(&last.bytes);
            // By reference: it is large.
            out.share(Arc::new(self.part));
        }
        out
    }
}

pub(super) fn place_of(conn: ConnId) -> (u32, u32) {
    (conn.slot, conn.generation)
}

pub(super) fn place(header: &Header) -> Place {
    (header.conn.slot, header.conn.generation, header.seq)
}

pub(super) const STOPPING: &str =
    "CLUSTERDOWN This node is shutting down, and did not pass the request on";
pub(super) const OLDER: &str = "CROSSNODE The key has moved to a node with an earlier program, where only its own clients wait for data: upgrade it, or connect there";
pub(super) const APART: &str =
    "TRYAGAIN Keys of this command are at several nodes by now, as slots have moved: send it again";
pub(super) const MOVING: &str = "TRYAGAIN The key is on its way from one node to another, and neither of them took the request: try again";
