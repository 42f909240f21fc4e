//! A worker's counters of its sessions with other nodes.

use crate::links::clocks::Offset;
use rufous_kernel::worker::{ChainFigures, NodeFigures};
use rufous_mapping::NodeNo;
use std::collections::BTreeMap;

/// Traffic of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub messages_in: u64,
    pub messages_out: u64,
}

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// The epoch of the worker's mapping.
    pub epoch: u64,
    pub sessions: u64,
    pub dials: u64,
    pub dial_errors: u64,
    /// Sessions that this side ended, by reason.
    pub refused: BTreeMap<u32, u64>,
    /// Sessions that the other side ended.
    pub refused_by_peers: u64,
    /// Messages for nodes without a session.
    pub lost: u64,
    /// Traffic of ended sessions.
    pub past: Traffic,
    pub peers: Vec<PeerFigures>,
    /// Requests forwarded to other nodes, and requests received from them.
    pub forward: ForwardFigures,
    pub chains: ChainFigures,
    /// Counters of lattice keyspaces.
    pub gossip: NodeFigures,
}

/// One established session.
#[derive(Clone, Debug)]
pub struct PeerFigures {
    pub no: NodeNo,
    pub worker: u16,
    /// The wire version in use.
    pub version: u16,
    /// The newest epoch that the node has named.
    pub epoch: u64,
    /// Bytes not yet passed to the connection, for lack of credit or because it is slow, do not
    /// count as sent.
    pub traffic: Traffic,
    /// The offset of its clock; `None` until the node has answered, which nodes of version 1 never
    /// do.
    pub clock: Option<Offset>,
}

/// A worker's counters of requests for other nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForwardFigures {
    /// Sent to other nodes.
    pub forwarded: u64,
    pub under_way: u64,
    /// Requests that wait to be sent again.
    pub waiting: u64,
    /// Sent to a node again.
    pub retried: u64,
    /// Requests in doubt.
    pub in_doubt: u64,
    /// Requests without a route, or that cannot be forwarded.
    pub refused: u64,
    /// Requests split into parts for several nodes.
    pub split: u64,
    /// Requests of other nodes: those that ran here, and those that were refused because their keys
    /// are not here.
    pub served: u64,
    pub not_here: u64,
}

impl Traffic {
    pub fn add(&mut self, other: &Traffic) {
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.messages_in += other.messages_in;
        self.messages_out += other.messages_out;
    }
}

impl Figures {
    /// Adds the counters of another worker of the same node.
    pub fn merge(&mut self, other: Figures) {
        self.epoch = self.epoch.max(other.epoch);
        self.sessions += other.sessions;
        self.dials += other.dials;
        self.dial_errors += other.dial_errors;
        for (code, count) in other.refused {
            *self.refused.entry(code).or_default() += count;
        }
        self.refused_by_peers += other.refused_by_peers;
        self.lost += other.lost;
        self.past.add(&other.past);
        self.forward.merge(&other.forward);
        self.chains.add(&other.chains);
        self.gossip.add(&other.gossip);
        self.peers.extend(other.peers);
        self.peers.sort_by_key(|peer| peer.no);
    }

    /// One session for each node: two workers may have one for a moment.
    pub fn by_node(&self) -> BTreeMap<NodeNo, &PeerFigures> {
        self.peers.iter().map(|peer| (peer.no, peer)).collect()
    }

    /// Traffic of all sessions, past and present.
    pub fn traffic(&self) -> Traffic {
        let mut all = self.past;
        self.peers.iter().for_each(|peer| all.add(&peer.traffic));
        all
    }

    /// How often this side has refused a session.
    pub fn refusals(&self) -> u64 {
        self.refused.values().sum()
    }
}

impl ForwardFigures {
    pub fn merge(&mut self, other: &Self) {
        self.forwarded += other.forwarded;
        self.under_way += other.under_way;
        self.waiting += other.waiting;
        self.retried += other.retried;
        self.in_doubt += other.in_doubt;
        self.refused += other.refused;
        self.split += other.split;
        self.served += other.served;
        self.not_here += other.not_here;
    }
}
