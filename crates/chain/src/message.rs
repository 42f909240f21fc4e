//! What replicas say to one another.

use std::sync::Arc;

/// One write of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its number in the slot's order, from 1.
    pub seq: u64,
    pub effect: Arc<[u8]>,
}

/// `since` is the epoch of the chain that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// To the next member, or to the learner: in order, without gaps. `all`:
    /// everybody from the head to the sender has all up to this.
    Items {
        slot: u16,
        since: u64,
        all: u64,
        items: Vec<Item>,
    },
    /// To the previous member: everybody from here on has all up to this.
    Ack {
        slot: u16,
        since: u64,
        seq: u64,
    },
    /// To the previous member: so much is here; send what follows, `items`:
    /// and to the head of a new chain, what may be here alone.
    State {
        slot: u16,
        since: u64,
        seq: u64,
        items: Vec<Item>,
    },
    /// What you lack I do not have apart any more: learn all of it.
    Behind {
        slot: u16,
        since: u64,
    },
    /// Send me all that you have.
    Learn {
        slot: u16,
        since: u64,
    },
    /// A part of a slot's data, in its order of copying. Parts are counted from
    /// 0, with which each copy begins anew.
    Copy {
        slot: u16,
        since: u64,
        part: u64,
        chunk: Vec<u8>,
    },
    /// All of it was sent, in so many parts, and is as of this write.
    Copied {
        slot: u16,
        since: u64,
        parts: u64,
        all: u64,
        seq: u64,
    },
    /// Asks for a lease; the time is the asker's.
    Ask {
        asked_us: u64,
    },
    Grant {
        asked_us: u64,
    },
}

impl Message {
    /// The slot that it is about, and the epoch of that slot's chain.
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
