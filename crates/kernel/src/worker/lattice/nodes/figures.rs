//! A worker's counters of lattice keyspaces that are shared with other nodes, and why it serves none of
//! their keys.

use super::{Awaited, Nodes, Waits};
use crate::replicate::gossip::{Figures, Gossip};
use crate::replicate::replicas::{Awaits, Replicas};
use rufous_base::WorkerId;
use rufous_lattice::Stamp;

/// Counters of other nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFigures {
    pub gossip: Figures,
    /// Messages that could not be applied.
    pub refused: u64,
    /// Workers that serve lattice keys.
    pub serving: u64,
    /// Workers that have lattice keyspaces and do not serve their keys.
    pub waiting: u64,
    /// Nodes that were away when the first keys were served, without their state.
    pub excused: u64,
    /// How far each other node is known to lag behind this worker, in microseconds; none if it has
    /// reported nothing.
    pub lags_us: Vec<(u16, Option<u64>)>,
}

/// Why no lattice key is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unserved {
    /// The node is no member of the mapping in force, or there is none yet.
    NoMember,
    /// The state of these nodes has not been received completely.
    Awaits {
        /// Nodes with a session.
        up: Vec<u16>,
        /// Nodes without one.
        away: Vec<u16>,
        awaited: Awaited,
    },
    /// These workers of this node have not sent what they started with.
    Workers(Vec<WorkerId>),
    /// This worker's report that it has received all is not sent yet.
    OwnReport,
    /// Tombstones that other nodes have forgotten are being forgotten here.
    Tombstones,
    /// What was received is not in the log yet.
    Log,
    /// Other workers of this node wait for something.
    OtherWorkers,
}

impl NodeFigures {
    /// Adds the counters of another worker of the same node; the larger lag counts.
    pub fn add(&mut self, other: &Self) {
        self.gossip.add(&other.gossip);
        self.refused += other.refused;
        self.serving += other.serving;
        self.waiting += other.waiting;
        self.excused = self.excused.max(other.excused);
        for &(node, lag) in &other.lags_us {
            match self.lags_us.iter_mut().find(|(of, _)| *of == node) {
                Some((_, known)) => *known = known.zip(lag).map(|(a, b)| a.max(b)),
                None => self.lags_us.push((node, lag)),
            }
        }
    }
}

impl Nodes {
    pub(in crate::worker::lattice) fn figures(&self, replicas: &Replicas) -> NodeFigures {
        let latest = replicas.latest();
        let lag = |upto: u64| {
            let time = latest.saturating_sub(upto);
            let behind = Stamp {
                time,
                ..Stamp::ZERO
            };
            (upto > 0).then(|| behind.unix_us())
        };
        let lags = replicas.nodes().into_iter();
        let gossip = self.gossip.as_ref().map(Gossip::figures);
        NodeFigures {
            gossip: gossip.unwrap_or_default(),
            refused: self.refused,
            serving: u64::from(self.serves),
            waiting: 0,
            excused: self.excused,
            lags_us: lags.map(|(node, upto)| (node, lag(upto))).collect(),
        }
    }

    /// Why no lattice key is served, if none is.
    pub(in crate::worker::lattice) fn unserved(&self, replicas: &Replicas) -> Option<Unserved> {
        if self.serves {
            return None;
        }
        let is_member = |number: u16| {
            let view = self.view.as_ref();
            view.is_some_and(|view| view.own == number && view.nodes.contains(&number))
        };
        if !self.number.is_some_and(is_member) || self.gossip.is_none() {
            return Some(Unserved::NoMember);
        }
        let missing = replicas.nodes().into_iter().filter(|(_, upto)| *upto == 0);
        let missing = missing.map(|(node, _)| node);
        let (up, away): (Vec<u16>, Vec<u16>) = missing.partition(|node| self.up.contains(node));
        if self.has_heard {
            let is_logged = self
                .held
                .iter()
                .all(|(_, waits)| !matches!(waits, Waits::HasHeard(_)));
            return Some(if is_logged {
                Unserved::OtherWorkers
            } else {
                Unserved::Log
            });
        }
        if up.is_empty() && away.is_empty() {
            return Some(match replicas.awaits() {
                Some(Awaits::States(workers)) => Unserved::Workers(workers),
                Some(Awaits::OwnReport) => Unserved::OwnReport,
                Some(Awaits::Tombstones) => Unserved::Tombstones,
                None => Unserved::Log,
            });
        }
        let awaited = self.away.awaited();
        Some(Unserved::Awaits { up, away, awaited })
    }
}
