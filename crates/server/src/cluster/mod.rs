//! A node among others: who the others are, what is agreed on with them, and
//! the connections to them.
//!
//! A thread that serves nobody ([`control`]) follows the coordinator and tells
//! each worker every mapping that comes into force. Workers have the sessions
//! with other nodes ([`links`]): of two nodes the one with the lower number
//! dials, at the worker of the other's number. Whichever worker has the
//! connection, all others know it, and pass it what they have to say; what comes
//! it passes to the worker of the slot.
//!
//! Invariants:
//! 1. What a worker says to a node goes out on the session that it knew when
//!    it said so, or not at all; likewise with what comes. So a layer above that
//!    begins anew when it hears of a session never meets what was left of an
//!    earlier one.
//! 2. A worker hears of a session before anything that came on it.
//! 3. Nothing that waits for a node is without bound: a session that takes too
//!    little is ended.
//! 4. No mapping is acted by that is not sound, or goes back.
//! 5. Without the coordinator everything goes on by the last mapping.
//! 6. A request is passed on to who has its keys in one hop, or not at all; a write
//!    that may have been done is never sent a second time.
//!
//! | module | what it has |
//! |---|---|
//! | [`settings`], [`identity`] | what a node is told, and who it is |
//! | [`state`] | what all its threads know |
//! | `start` | how a node comes into its cluster; `etcd` where that agrees through one |
//! | [`control`] | the coordinator's view, the next epoch |
//! | [`links`] | sessions of one worker; `routes` who has which, and dialling; `passing` what goes over them |
//! | [`reports`] | who has learned slots, on its way to who plans |
//! | [`rooms`] | what waits to be sent to each node; `parked` what a session has no room for yet |
//! | [`clocks`] | how far the clocks of other nodes are from this one's |
//! | [`figures`] | what workers count of them; `damage` what has to be mended |
//! | `unclaimed` | data that is of no cluster yet |
//! | [`about`] | what the node says of itself, and whether it is ready; [`status`] how the cluster is, [`versions`] which programs its nodes run, [`preview`] what other weights would move |
//! | [`tls`] | certificates between nodes |
//! | `redirect` | what clients are told who go to other nodes by themselves |
//! | `way` | where the keys of a request are, for all other clients |
//! | [`forward`] | requests for other nodes; `again` those that have to be sent again, `returned` those whose keys left before they ran here, `split` those that several have a part of, `wide` those about all keys |
//! | `serve` | requests of other nodes; `jobs` on whose behalf a request runs; `words` requests on their way |
//! | `gossip` | lattice keyspaces that other nodes have, too |
//! | `front` | where the front of a worker meets all this |

pub mod about;
mod again;
pub mod clocks;
pub mod control;
mod damage;
#[cfg(feature = "etcd")]
mod etcd;
pub mod figures;
pub mod forward;
pub(crate) mod front;
mod gossip;
pub mod identity;
pub(crate) mod jobs;
pub mod links;
mod parked;
mod passing;
pub mod preview;
pub(crate) mod redirect;
pub mod reports;
pub(crate) mod returned;
pub mod rooms;
mod routes;
pub(crate) mod serve;
pub mod settings;
pub(crate) mod split;
mod start;
pub mod state;
pub mod status;
#[cfg(test)]
mod tests;
pub mod tls;
pub mod unclaimed;
pub mod versions;
pub(crate) mod way;
mod wide;
mod words;

pub use settings::Settings;
pub use start::{ClusterError, Joining};
pub use state::Cluster;

use rufous_base::ConnId;
use rufous_mapping::{Mapping, NodeNo};
use rufous_wire::message::Learned;
use rufous_wire::{Class, Envelope};
use std::sync::Arc;

/// A session with a node, told from an earlier or later one: when it came up,
/// by the clock that the workers of this node share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Session(pub u64);

/// What workers are told of nodes, and tell each other.
#[derive(Clone, Debug)]
pub enum PeerMessage {
    /// To act by; from the control thread.
    Mapping(Arc<Mapping>),
    /// The sender has a session with this node.
    Up(NodeNo, Session),
    /// It has it no more.
    Down(NodeNo, Session),
    /// For a node, by a session of the receiver's.
    Send {
        to: NodeNo,
        session: Session,
        class: Class,
        envelope: Box<Envelope>,
    },
    /// From a node, for slots of the receiver's.
    Take {
        from: NodeNo,
        session: Session,
        /// To be given back in [`PeerMessage::Taken`].
        credit: Credit,
        envelope: Box<Envelope>,
    },
    /// For the node that plans the next epoch; from the control thread.
    Report { to: NodeNo, learned: Learned },
    /// The receiver may let more come.
    Taken(Credit),
    /// What a node says on a session of the receiver's makes no sense.
    Refuse(NodeNo, Session, &'static str),
}

/// What a message has taken of its class's window.
#[derive(Clone, Copy, Debug)]
pub struct Credit {
    pub conn: ConnId,
    pub class: Class,
    pub size: usize,
}

/// What layers above hear, in order.
#[derive(Clone, Debug)]
pub enum Heard {
    Mapping(Arc<Mapping>),
    /// A session begins: nothing of an earlier one comes any more.
    Up(NodeNo),
    Down(NodeNo),
    Message(NodeNo, Box<Envelope>),
}
