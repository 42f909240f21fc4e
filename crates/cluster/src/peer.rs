//! What workers are told of other nodes and tell one another, and what their links pass on.

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
