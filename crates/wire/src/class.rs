//! Classes of messages, each with a window of its own, so that no class waits for another.
//!
//! Messages of a class arrive in the order in which they were sent; those of different classes may
//! not. So all messages to one node about one slot in one epoch of its chain are sent in one class:
//! to a learner [`Class::Learning`], including its items, to a member [`Class::Chain`].

use crate::message::Body;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// Heartbeats, leases, mappings, clocks: never waits for credit.
    Control = 0,
    /// Writes of strict keys on their way along their chains.
    Chain = 1,
    /// Slots that are copied to new members.
    Learning = 2,
    /// Gossip between replicas of lattice keys.
    Gossip = 3,
    /// Requests of clients for the node that has their keys, and ends of their waits.
    Request = 4,
    /// Replies to forwarded requests: a class of their own, so that requests that wait for room at
    /// both ends never block the replies that would make room.
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

    /// Its index among classes with windows.
    pub(crate) fn flow(self) -> Option<usize> {
        FLOWS.iter().position(|class| *class == self)
    }

    /// Bytes of frames that may be in transit before the receiver returns credit. The last frame
    /// may exceed it.
    pub const fn window(self) -> usize {
        match self {
            Self::Control => 0,
            Self::Chain | Self::Request | Self::Reply => 8 << 20,
            Self::Learning | Self::Gossip => 2 << 20,
        }
    }

    /// Its share of a connection that all classes use at once.
    pub(crate) const fn weight(self) -> u64 {
        match self {
            Self::Control | Self::Chain | Self::Request | Self::Reply => 16,
            Self::Learning => 4,
            Self::Gossip => 1,
        }
    }

    /// Whether its messages may be split into pieces.
    pub(crate) const fn has_pieces(self) -> bool {
        matches!(self, Self::Chain | Self::Learning)
    }

    /// Whether messages of this kind belong to the class.
    pub(crate) fn takes(self, body: &Body) -> bool {
        match body {
            Body::Items(_) | Body::Ack(_) | Body::State(_) | Body::Behind(_) => {
                matches!(self, Self::Chain | Self::Learning)
            }
            Body::Piece(_) => self.has_pieces(),
            Body::Letter(_) | Body::Alike(_) => self == Self::Chain,
            Body::Learn(_) | Body::Copy(_) | Body::Copied(_) => self == Self::Learning,
            Body::Gossip(_) | Body::Digest(_) => self == Self::Gossip,
            Body::Requests(_) | Body::EndWaits(_) => self == Self::Request,
            Body::Replies(_) => self == Self::Reply,
            Body::Hello(_)
            | Body::Refuse(_)
            | Body::Challenge(_)
            | Body::Proof(_)
            | Body::Sealed(_)
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
