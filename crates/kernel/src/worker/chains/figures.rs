//! Settings, counters and messages of a chain host, for the embedder.

use rufous_chain::{Envelope, Peer};

/// A worker's settings for its node's part in chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainSettings {
    /// The number of this start of the node.
    pub incarnation: u64,
    /// The duration of leases.
    pub lease_us: u64,
    /// The node may have granted leases before this start.
    pub has_run: bool,
    /// The limit of all the node's workers for copies of slots, in bytes per second; 0: no limit.
    pub move_rate: u64,
}

/// A worker's counters of chains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainFigures {
    /// Slots of this worker that this node serves, is a member of the chains of, and has all data
    /// of.
    pub served: u64,
    pub member: u64,
    pub whole: u64,
    /// Slots whose data here is not as it should be: their chains wait until this node is removed
    /// from them.
    pub broken: u64,
    /// Writes passed to chains.
    pub appended: u64,
    /// Frames that wait for chains, messages that wait for the log, requests that wait for a slot.
    pub waiting: u64,
    pub held: u64,
    pub parked: u64,
    /// How often the outcome of writes became unknown.
    pub lost: u64,
    /// Mappings that could not follow the one in force; effects of other nodes that could not be
    /// applied; changes that no chain can carry.
    pub refused_mappings: u64,
    pub refused_effects: u64,
    pub spread: u64,
}

impl ChainFigures {
    /// Adds the counters of another worker of the same node.
    pub fn add(&mut self, other: &Self) {
        for (sum, n) in [
            (&mut self.served, other.served),
            (&mut self.member, other.member),
            (&mut self.whole, other.whole),
            (&mut self.broken, other.broken),
            (&mut self.appended, other.appended),
            (&mut self.waiting, other.waiting),
            (&mut self.held, other.held),
            (&mut self.parked, other.parked),
            (&mut self.lost, other.lost),
            (&mut self.refused_mappings, other.refused_mappings),
            (&mut self.refused_effects, other.refused_effects),
            (&mut self.spread, other.spread),
        ] {
            *sum += n;
        }
    }
}

/// A message for a worker of another node.
#[derive(Clone, Debug)]
pub struct Said {
    pub to: Peer,
    /// Sender or receiver is a learner of the slot concerned.
    pub learning: bool,
    pub envelope: Envelope,
}
