//! A worker's counters of its sessions with other nodes.

use crate::links::clocks::Offset;
use rufous_base::figures;
use rufous_kernel::worker::{ChainFigures, LinearFigures, NodeFigures};
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
    /// Nodes whose process has ended, as their machine refused a connection after a session.
    pub gone: u64,
    /// Sessions that this side ended, by reason.
    pub refused: BTreeMap<u32, u64>,
    /// Sessions that the other side ended.
    pub refused_by_peers: u64,
    /// Accepted connections that were closed before their node was known, to make room.
    pub turned_away: u64,
    /// Messages for nodes without a session.
    pub lost: u64,
    /// Traffic of ended sessions.
    pub past: Traffic,
    pub peers: Vec<PeerFigures>,
    /// Requests forwarded to other nodes, and requests received from them.
    pub forward: ForwardFigures,
    pub chains: ChainFigures,
    pub transactions: LinearFigures,
    pub waits: WaitFigures,
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

figures! {
    /// A worker's counters of requests for other nodes, and of their requests.
    pub struct ForwardFigures {
        forwarded("cluster_forwarded", "rufous_forwarded_total"):
            "Requests forwarded to other nodes, repetitions included.";
        under_way("cluster_forwarded_under_way", "rufous_forwarded_under_way"):
            "Forwarded requests without a reply yet, apart from those that wait for data.";
        blocked("cluster_forwarded_blocked", "rufous_forwarded_blocked"):
            "Forwarded requests that wait for data at other nodes.";
        waiting("cluster_forwarded_waiting", "rufous_forwarded_waiting"):
            "Requests that wait to be forwarded again.";
        retried("cluster_forwarded_again", "rufous_forwarded_again_total"): "Requests forwarded again.";
        in_doubt("cluster_forwarded_in_doubt", "rufous_forwarded_in_doubt_total"):
            "Forwarded writes with an unknown result.";
        refused("cluster_forwarding_refused", "rufous_forwarding_refused_total"):
            "Requests that could not be forwarded: no route to the key, or not a command for other nodes.";
        split("cluster_split", "rufous_split_total"):
            "Requests split because their keys are on several nodes.";
        served("cluster_served", "rufous_served_total"):
            "Requests of other nodes executed by this node.";
        served_blocked("cluster_served_blocked", "rufous_served_blocked"):
            "Requests of other nodes that wait for data at this node.";
        not_here("cluster_not_served_here", "rufous_not_served_here_total"):
            "Requests of other nodes for keys that this node does not have.";
    }
}

figures! {
    /// How long clients of a worker have waited for the outcomes of transactions over slots.
    pub struct WaitFigures {
        outcomes("cluster_transactions_outcomes", "rufous_cluster_transactions_outcomes_total"):
            "Transactions over several slots that clients of this node were answered, UNKNOWNRESULT included.";
        waited_us("cluster_transactions_waited_us", "rufous_cluster_transactions_waited_microseconds_total"):
            "Time that clients have waited for these answers, together, in microseconds.";
        over_10ms("cluster_transactions_over_10ms", "rufous_cluster_transactions_over_10ms_total"):
            "Those whose client has waited for more than 10 ms.";
        over_100ms("cluster_transactions_over_100ms", "rufous_cluster_transactions_over_100ms_total"):
            "Those whose client has waited for more than 100 ms.";
        over_1s("cluster_transactions_over_1s", "rufous_cluster_transactions_over_1s_total"):
            "Those whose client has waited for more than 1 s.";
        unknown("cluster_transactions_unknown", "rufous_cluster_transactions_unknown_total"):
            "Those that were answered UNKNOWNRESULT, as they had no outcome in time.";
    }
}

impl WaitFigures {
    /// A client was answered after this time.
    pub fn on_answer(&mut self, waited_us: u64) {
        self.outcomes += 1;
        self.waited_us += waited_us;
        self.over_10ms += u64::from(waited_us > 10_000);
        self.over_100ms += u64::from(waited_us > 100_000);
        self.over_1s += u64::from(waited_us > 1_000_000);
    }
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
        self.gone += other.gone;
        for (code, count) in other.refused {
            *self.refused.entry(code).or_default() += count;
        }
        self.refused_by_peers += other.refused_by_peers;
        self.turned_away += other.turned_away;
        self.lost += other.lost;
        self.past.add(&other.past);
        self.forward.add(&other.forward);
        self.chains.add(&other.chains);
        self.transactions.add(&other.transactions);
        self.waits.add(&other.waits);
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

#[cfg(test)]
mod tests {
    use super::WaitFigures;

    #[test]
    fn waits_are_counted_by_their_lengths() {
        let mut waits = WaitFigures::default();
        for us in [900, 10_001, 100_001, 2_000_000] {
            waits.on_answer(us);
        }
        let counted = (waits.over_10ms, waits.over_100ms, waits.over_1s);
        assert_eq!((waits.outcomes, counted), (4, (3, 2, 1)));
        assert_eq!(waits.waited_us, 2_110_902);
    }
}
