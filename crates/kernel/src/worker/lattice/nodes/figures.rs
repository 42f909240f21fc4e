//! A worker's counters of lattice keyspaces that are shared with other nodes.

use super::Nodes;
use crate::replicate::gossip::{Figures, Gossip};
use crate::replicate::replicas::Replicas;
use rufous_lattice::Stamp;

/// Counters of other nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFigures {
    pub gossip: Figures,
    /// Messages that could not be applied.
    pub refused: u64,
    /// Workers that serve lattice keys.
    pub serving: u64,
    /// How far each other node is known to lag behind this worker, in microseconds; none if it has
    /// reported nothing.
    pub lags_us: Vec<(u16, Option<u64>)>,
}

impl NodeFigures {
    /// Adds the counters of another worker of the same node; the larger lag counts.
    pub fn add(&mut self, other: &Self) {
        self.gossip.add(&other.gossip);
        self.refused += other.refused;
        self.serving += other.serving;
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
            lags_us: lags.map(|(node, upto)| (node, lag(upto))).collect(),
        }
    }
}
