//! What a seed stands for.

use crate::plan::{DiskFaults, Mode};
use crate::random::Random;
use rufous_base::limits::SLOTS;
use rufous_base::slot::slot_of;

/// The keys that clients use: some share a slot.
pub const KEYS: [&str; 6] = ["{a}1", "{a}2", "b", "{c}1", "{c}2", "d"];

#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub copies: usize,
    /// Workers of each node.
    pub workers: Vec<usize>,
    /// Of how many the cluster is made at first; the others may join.
    pub first: usize,
    /// The slots that are anybody's; none: all.
    pub slots: Vec<u16>,
    pub mode: Mode,
    pub disk: DiskFaults,
    pub clients: usize,
    pub think_us: u64,
    /// From node to node, and from clients.
    pub network_us: (u64, u64),
    /// From worker to worker.
    pub message_us: (u64, u64),
    pub turn_us: (u64, u64),
    /// How often bytes are cut on their way.
    pub split: f64,
    /// By how many thousandths clocks may be wrong.
    pub drift: u64,
    pub trouble_us: u64,
    pub troubles: Troubles,
}

/// How often it comes to what, in so many microseconds; 0: never.
#[derive(Clone, Debug, Default)]
pub struct Troubles {
    pub cut_us: u64,
    pub part_us: u64,
    pub pause_us: u64,
    pub end_us: u64,
    pub end_all_us: u64,
    pub away_us: u64,
    pub join_us: u64,
    pub drain_us: u64,
}

impl Plan {
    pub fn of(seed: u64) -> Self {
        let mut random = Random::new(seed, "cluster");
        let copies = random.weighted(&[(2, 1), (5, 2), (3, 3)]);
        let first = copies.max(2);
        let nodes = (first + random.index(3)).min(5);
        let workers = (0..nodes).map(|_| 1 + random.index(3)).collect();
        // Without a log a node that ends has lost all.
        let mode = match copies {
            1 => random.weighted(&[(2, Mode::Always), (1, Mode::No)]),
            _ => random.weighted(&[
                (3, Mode::Always),
                (1, Mode::Everysec),
                (1, Mode::No),
                (2, Mode::Off),
            ]),
        };
        let slots = match random.chance(0.02) {
            true => Vec::new(),
            false => some_slots(),
        };
        let mut every = |chance: f64, low: u64, high: u64| match random.chance(chance) {
            true => random.skewed(low, high) * 1_000,
            false => 0,
        };
        let mut troubles = Troubles {
            cut_us: every(0.7, 300, 5_000),
            part_us: every(0.5, 1_000, 8_000),
            pause_us: every(0.5, 500, 8_000),
            end_us: every(0.7, 1_500, 10_000),
            end_all_us: every(0.2, 8_000, 20_000),
            away_us: every(0.3, 3_000, 10_000),
            join_us: every(0.8, 1_000, 10_000),
            drain_us: every(0.3, 4_000, 15_000),
        };
        if mode == Mode::Off && troubles.end_us > 0 {
            // Who is taken for gone meanwhile would be one too many.
            (troubles.pause_us, troubles.part_us) = (0, 0);
        }
        let disk = DiskFaults {
            torn: if random.chance(0.5) { 0.5 } else { 0.0 },
            write_us: (20, random.skewed(50, 2_000)),
            sync_us: (100, random.skewed(300, 20_000)),
            unordered_names: random.chance(0.3),
            ..DiskFaults::default()
        };
        Self {
            seed,
            copies,
            workers,
            first,
            slots,
            mode,
            disk,
            clients: 2 + random.index(4),
            think_us: random.skewed(5_000, 300_000),
            network_us: (50, random.skewed(300, 30_000)),
            message_us: (1, random.skewed(10, 500)),
            turn_us: (2, random.skewed(10, 500)),
            split: if random.chance(0.3) { 0.3 } else { 0.0 },
            drift: random.below(50),
            trouble_us: random.between(10, 25) * 1_000_000,
            troubles,
        }
    }
}

/// Those of the keys, and some of all workers.
fn some_slots() -> Vec<u16> {
    let used = KEYS.iter().map(|key| slot_of(key.as_bytes()));
    let mut slots: Vec<u16> = used.chain((0..SLOTS as u16).step_by(1000)).collect();
    slots.sort_unstable();
    slots.dedup();
    slots
}
