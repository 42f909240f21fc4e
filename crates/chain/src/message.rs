//! Messages between replicas.

use std::sync::Arc;

/// One write of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its number in the slot's order, from 1.
    pub seq: u64,
    pub effect: Arc<[u8]>,
}

/// `since` is the epoch of the chain that the message is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// To the next member, or to the learner: in order, without gaps. `all`: all members from the
    /// head to the sender have all writes up to this one.
    Items {
        slot: u16,
        since: u64,
        all: u64,
        items: Vec<Item>,
    },
    /// To the previous member: all members from the sender on have all writes up to this one.
    Ack {
        slot: u16,
        since: u64,
        seq: u64,
    },
    /// To the previous member: this is the sender's last write; send what follows. `items`, to the
    /// head of a new chain: writes that the sender alone may have.
    State {
        slot: u16,
        since: u64,
        seq: u64,
        items: Vec<Item>,
    },
    /// The writes that you lack are not kept individually any more: learn the whole slot.
    Behind {
        slot: u16,
        since: u64,
    },
    /// Send me the whole slot.
    Learn {
        slot: u16,
        since: u64,
    },
    /// A part of a slot's data, in the order of copying. Parts are numbered from 0 in each copy.
    Copy {
        slot: u16,
        since: u64,
        part: u64,
        chunk: Vec<u8>,
    },
    /// The copy is complete, with this number of parts, and has all writes up to this one.
    Copied {
        slot: u16,
        since: u64,
        parts: u64,
        all: u64,
        seq: u64,
    },
    /// Asks for a lease; the time is that of the sender's clock.
    Ask {
        asked_us: u64,
    },
    Grant {
        asked_us: u64,
    },
}

impl Message {
    /// The slot that the message is about, and the epoch of that slot's chain.
    pub fn chain(&self) -> Option<(u16, u64)> {
        match self {
            Self::Ask { .. } | Self::Grant { .. } => None,
            Self::Items { slot, since, .. }
            | Self::Ack { slot, since, .. }
            | Self::State { slot, since, .. }
            | Self::Behind { slot, since }
            | Self::Learn { slot, since }
            | Self::Copy { slot, since, .. }
            | Self::Copied { slot, since, .. } => Some((*slot, *since)),
        }
    }
}

/// A message with the epoch that its sender knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub epoch: u64,
    pub message: Message,
}
