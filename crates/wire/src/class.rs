//! Classes of messages, each with a window of its own, so that none waits for
//! another.
//!
//! Messages of a class come in the order in which they were sent; those of
//! different classes do not. So all that is said of one slot in one epoch of its
//! chain to one node is sent in one class: to a learner [`Class::Learning`], its
//! items too, to a member [`Class::Chain`].

use crate::message::Body;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// Who is there, leases, mappings, clocks: never waits for credit.
    Control = 0,
    /// Writes of strict keys on their way along their chains.
    Chain = 1,
    /// Slots that are copied to new members.
    Learning = 2,
    /// What replicas of lattice keys tell one another.
    Gossip = 3,
    /// Requests of clients for who has their keys.
    Request = 4,
    /// Their replies: a class of their own, so that requests that wait for room
    /// at both ends never hold up the replies that would make it.
    Reply = 5,
}

/// Classes with windows.
pub(crate) const FLOWS: [Class; 5] = [
    Class::Chain,
    Class::Learning,
    Class::Gossip,
    Class::Request,
    Class::Reply,
];

impl Class {
    pub fn from_byte(byte: u8) -> Option<Self> {
        let mut all = [Self::Control].into_iter().chain(FLOWS);
        all.find(|class| *class as u8 == byte)
    }

    /// Its place among classes with windows.
    pub(crate) fn flow(self) -> Option<usize> {
        FLOWS.iter().position(|class| *class == self)
    }

    /// Bytes of frames that may be on their way before the receiver has said
    /// that it took some. The last of them may go beyond.
    pub const fn window(self) -> usize {
        match self {
            Self::Control => 0,
            Self::Chain | Self::Request | Self::Reply => 8 << 20,
            Self::Learning | Self::Gossip => 2 << 20,
        }
    }

    /// Its part of a connection that all want to use at once.
    pub(crate) const fn weight(self) -> u64 {
        match self {
            Self::Control | Self::Chain | Self::Request | Self::Reply => 16,
            Self::Learning => 4,
            Self::Gossip => 1,
        }
    }

    /// Whether its messages may come in pieces.
    pub(crate) const fn has_pieces(self) -> bool {
        matches!(self, Self::Chain | Self::Learning)
    }

    /// Whether messages of this kind may come in the class.
    pub(crate) fn takes(self, body: &Body) -> bool {
        match body {
            Body::Items(_) | Body::Ack(_) | Body::State(_) | Body::Behind(_) => {
                matches!(self, Self::Chain | Self::Learning)
            }
            Body::Piece(_) => self.has_pieces(),
            Body::Learn(_) | Body::Copy(_) | Body::Copied(_) => self == Self::Learning,
            Body::Gossip(_) | Body::Digest(_) => self == Self::Gossip,
            Body::Requests(_) => self == Self::Request,
            Body::Replies(_) => self == Self::Reply,
            Body::Hello(_)
            | Body::Refuse(_)
            | Body::Credit(_)
            | Body::Heartbeat(_)
            | Body::Mapping(_)
            | Body::Ask(_)
            | Body::Grant(_)
            | Body::Learned(_)
            | Body::AskClock(_)
            | Body::Clock(_) => self == Self::Control,
        }
    }
}
