//! Messages to and between workers about other nodes, and what links pass to the layers above.

use rufous_base::ConnId;
use rufous_mapping::{Mapping, NodeNo};
use rufous_wire::message::Learned;
use rufous_wire::{Body, Class, Envelope};
use std::sync::Arc;

/// Identifies a session with a node among earlier and later ones: the time when it was established,
/// by the clock that the workers of this node share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Session(pub u64);

/// Messages to workers about nodes, from the control thread and from each other.
#[derive(Clone, Debug)]
pub enum PeerMessage {
    /// The mapping to apply; from the control thread.
    Mapping(Arc<Mapping>),
    /// The sender has a session with this node.
    Up(NodeNo, Session),
    /// The sender no longer has this session.
    Down(NodeNo, Session),
    /// To be sent to a node, on a session of the receiver.
    Send {
        to: NodeNo,
        session: Session,
        class: Class,
        envelope: Box<Envelope>,
    },
    /// From a node, for slots of the receiver.
    Take {
        from: NodeNo,
        session: Session,
        /// To be given back in [`PeerMessage::Taken`].
        credit: Credit,
        envelope: Box<Envelope>,
    },
    /// For the leader; from the control thread.
    Report { to: NodeNo, learned: Learned },
    /// The receiver may grant this credit again.
    Taken(Credit),
    /// A node has sent an invalid message on a session of the receiver.
    Refuse(NodeNo, Session, &'static str),
}

/// The part of its class's window that a message has taken.
#[derive(Clone, Copy, Debug)]
pub struct Credit {
    pub conn: ConnId,
    pub class: Class,
    pub size: usize,
}

/// Events for the layers above, in order.
#[derive(Clone, Debug)]
pub enum Heard {
    Mapping(Arc<Mapping>),
    /// A session begins: no message of an earlier one follows.
    Up(NodeNo),
    Down(NodeNo),
    Message(NodeNo, Box<Envelope>),
}

impl Heard {
    /// Whether it is a message about chains or of transactions: several of them have their effects together.
    pub fn is_for_kernel(&self) -> bool {
        let Self::Message(_, envelope) = self else {
            return false;
        };
        let is_of_requests = |body: &Body| {
            matches!(
                body,
                Body::Requests(_) | Body::EndWaits(_) | Body::Replies(_) | Body::Gossip(_)
            )
        };
        !envelope.body.as_ref().is_some_and(is_of_requests)
    }
}
