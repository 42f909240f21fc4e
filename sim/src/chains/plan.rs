//! What a seed stands for.

use super::clients::mixed;
use crate::engine::Fault;
use rufous_base::rng::Rng;

pub(super) const MOST_WORKERS: u64 = 3;

#[derive(Clone, Debug)]
pub struct Plan {
    pub copies: usize,
    pub nodes: Vec<NodePlan>,
    /// The seed of the network.
    pub network: u64,
    /// What all that is not planned is drawn from.
    pub rng: Rng,
}

#[derive(Clone, Debug)]
pub struct NodePlan {
    /// How fast its clock runs, in thousandths, and what it shows at first.
    pub rate: u64,
    pub offset_us: u64,
    pub workers: u64,
}

impl Plan {
    pub(super) fn new(seed: u64, fault: Fault) -> Self {
        // By how many thousandths clocks may be wrong.
        let drift = match fault {
            Fault::Drift => 250,
            _ => 50,
        };
        let mut rng = Rng::new(mixed(seed));
        let copies = 1 + rng.below(3) as usize;
        let count = copies as u64 + 1 + rng.below(3);
        let nodes = (0..count).map(|_| NodePlan::new(drift, &mut rng));
        Self {
            copies,
            nodes: nodes.collect(),
            network: rng.next_u64(),
            rng,
        }
    }
}

impl NodePlan {
    fn new(drift: u64, rng: &mut Rng) -> Self {
        // Often as wrong as may be: there the bound has to hold.
        let rate = match rng.below(4) {
            0 => 1000 - drift,
            1 => 1000 + drift,
            _ => 1000 - drift + rng.below(2 * drift + 1),
        };
        Self {
            rate,
            offset_us: rng.below(1_000_000_000),
            workers: 1 + rng.below(MOST_WORKERS),
        }
    }
}
