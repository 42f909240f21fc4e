//! What a seed of the world of nodes stands for.

use crate::engine::random::Random;
use rufous_kernel::replicate::gossip::Limits;

/// See the module's description. Times are in microseconds.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    /// Of each node.
    pub workers: Vec<usize>,
    /// Workers of a node that have a replica of each key; 0: all.
    pub threads: u16,
    /// Changes are shown after those that they may depend on.
    pub cut: bool,
    pub rounds: usize,
    /// Operations in a round.
    pub operations: u64,
    pub limits: Limits,
    pub gossip_ms: u32,
    pub think_us: u64,
    pub sync_us: u64,
    pub ring_us: u64,
    pub delay_us: u64,
    /// Until a broken session, or a node, is there again.
    pub away_us: u64,
    /// Of each clock: how far it is off.
    pub clocks: Vec<i64>,
    /// How likely before an operation.
    pub breaks: f64,
    pub crashes: f64,
    pub drops: f64,
}

impl Plan {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed, "gossip");
        let nodes = random.between(2, 4) as usize;
        let workers = (0..nodes).map(|_| random.between(1, 3) as usize).collect();
        let all = random.chance(0.6);
        let clock = |random: &mut Random| random.between(0, 4_000_000) as i64 - 2_000_000;
        let kept_bytes = random.skewed(200, 1 << 20) as usize;
        Self {
            seed,
            workers,
            threads: if all { 0 } else { random.between(1, 2) as u16 },
            cut: all && random.chance(0.3),
            rounds: random.between(2, 5) as usize,
            operations: random.between(20, 150),
            limits: Limits {
                kept_bytes,
                flying_bytes: random.skewed(100, 1 << 16) as usize,
                compare_us: 0,
            },
            gossip_ms: random.skewed(1, 50) as u32,
            think_us: random.skewed(100, 20_000),
            sync_us: random.skewed(10, 5_000),
            ring_us: random.skewed(10, 2_000),
            delay_us: random.skewed(50, 50_000),
            away_us: random.skewed(1_000, 400_000),
            clocks: (0..nodes).map(|_| clock(&mut random)).collect(),
            breaks: if random.chance(0.7) { 0.05 } else { 0.0 },
            crashes: if random.chance(0.5) { 0.02 } else { 0.0 },
            drops: if random.chance(0.4) { 0.01 } else { 0.0 },
        }
    }
}
