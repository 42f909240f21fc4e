//! What a seed stands for.

use crate::engine::random::Random;
use crate::node::plan::{DiskFaults, Mode};
use rufous_base::limits::SLOTS;
use rufous_base::slot::slot_of;

/// The strict keys that clients use: some share a slot.
pub const KEYS: [&str; 6] = ["{a}1", "{a}2", "b", "{c}1", "{c}2", "d"];

/// What keys of the lattice keyspace begin with.
pub const PREFIX: &str = "l:";

/// How many nodes a cluster has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Size {
    /// As the seed has it: 2 to 5, or 6 to 12 in one seed of eight.
    #[default]
    Any,
    /// This many nodes, with one worker each, and little load.
    Of(usize),
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub copies: usize,
    /// Workers of each node.
    pub workers: Vec<usize>,
    /// Of how many the cluster is made at first; the others may join.
    pub first: usize,
    /// The slots that have owners; none: all.
    pub slots: Vec<u16>,
    pub mode: Mode,
    pub disk: DiskFaults,
    pub clients: usize,
    /// How many of these ask any node, which passes on what is another's.
    pub plain: usize,
    /// How many requests these send at once, at most.
    pub pipeline: usize,
    pub think_us: u64,
    /// The keyspace that all nodes have, if there is one.
    pub loose: Option<Loose>,
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

/// A lattice keyspace, as each node's configuration has it.
#[derive(Clone, Debug)]
pub struct Loose {
    /// Workers with a replica, by node; 0: all.
    pub threads: Vec<u16>,
    pub gossip_ms: Vec<u32>,
    pub cut: bool,
}

/// The mean time between faults of each kind, in microseconds; 0: never.
#[derive(Clone, Debug, Default)]
pub struct Troubles {
    pub cut_us: u64,
    pub part_us: u64,
    /// The network parts and is whole again, many times in a row.
    pub flap_us: u64,
    /// A node is slow for a while.
    pub slow_us: u64,
    pub pause_us: u64,
    pub end_us: u64,
    pub end_all_us: u64,
    pub away_us: u64,
    pub join_us: u64,
    pub drain_us: u64,
    /// A node that has left comes back as a new one, with its old data.
    pub return_us: u64,
}

impl Troubles {
    fn of(seed: u64, random: &mut Random, mode: Mode) -> Self {
        let every = |random: &mut Random, chance: f64, low: u64, high: u64| {
            let is_there = random.chance(chance);
            if is_there {
                random.skewed(low, high) * 1_000
            } else {
                0
            }
        };
        let further = &mut Random::new(seed, "further troubles");
        let mut all = Self {
            cut_us: every(random, 0.7, 300, 5_000),
            part_us: every(random, 0.5, 1_000, 8_000),
            pause_us: every(random, 0.5, 500, 8_000),
            end_us: every(random, 0.7, 1_500, 10_000),
            end_all_us: every(random, 0.2, 8_000, 20_000),
            away_us: every(random, 0.3, 3_000, 10_000),
            join_us: every(random, 0.8, 1_000, 10_000),
            drain_us: every(random, 0.3, 4_000, 15_000),
            flap_us: every(further, 0.3, 3_000, 12_000),
            slow_us: every(further, 0.3, 2_000, 10_000),
            return_us: every(further, 0.7, 2_000, 10_000),
        };
        if mode == Mode::Off && all.end_us > 0 {
            // One more node that is presumed dead would be one too many.
            (all.pause_us, all.part_us, all.flap_us) = (0, 0, 0);
        }
        all
    }
}

impl Plan {
    /// Whether clients use keys that are written together: in every fourth seed, so that seeds
    /// that are kept stay what they were.
    pub fn has_pairs(&self) -> bool {
        self.seed % 4 == 1
    }

    /// Whether some of their values are so long that both together are more than a message holds.
    pub fn has_larger_pairs(&self) -> bool {
        self.seed % 32 == 17
    }

    /// Whether messages between workers take long, so that mappings change while keys are held: in
    /// every fourth of these seeds.
    pub fn has_slow_messages(&self) -> bool {
        self.seed % 16 == 9
    }

    /// Whether clients use a key with deadlines: in every eighth seed, likewise.
    pub fn has_deadlines(&self) -> bool {
        self.seed % 8 == 4
    }

    /// Whether nodes have a secret, and processes without it connect to them: in every eighth seed,
    /// for the same reason.
    pub fn has_secret(&self) -> bool {
        self.seed % 8 == 4
    }

    pub fn of(seed: u64, size: Size) -> Self {
        let mut random = Random::new(seed, "cluster");
        let copies = random.weighted(&[(2, 1), (5, 2), (3, 3)]);
        let nodes = (copies.max(2) + random.index(3)).min(5);
        let (first, nodes, most_workers) = counts(seed, size, copies.max(2), nodes);
        let workers: Vec<usize> = (0..nodes).map(|_| 1 + random.index(most_workers)).collect();
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
            true if nodes <= 5 => Vec::new(),
            _ => some_slots(nodes),
        };
        let troubles = Troubles::of(seed, &mut random, mode);
        let disk = DiskFaults {
            torn: if random.chance(0.5) { 0.5 } else { 0.0 },
            write_us: (20, random.skewed(50, 2_000)),
            sync_us: (100, random.skewed(300, 20_000)),
            unordered_names: random.chance(0.3),
            ..DiskFaults::default()
        };
        let plan = Self {
            seed,
            copies,
            workers,
            first,
            slots,
            mode,
            disk,
            clients: 2 + random.index(4),
            plain: 0,
            pipeline: 1,
            think_us: random.skewed(5_000, 300_000),
            loose: None,
            network_us: (50, random.skewed(300, 30_000)),
            message_us: (1, random.skewed(10, 500)),
            turn_us: (2, random.skewed(10, 500)),
            split: if random.chance(0.3) { 0.3 } else { 0.0 },
            drift: random.below(50),
            trouble_us: random.between(10, 25) * 1_000_000,
            troubles,
        };
        plan.with_doors()
            .with_loose()
            .at_ease(size)
            .with_lasting()
            .with_followed()
            .with_losses()
    }

    /// Which clients use the plain endpoint, and how many requests they pipeline.
    fn with_doors(self) -> Self {
        let mut random = Random::new(self.seed, "doors");
        let plain = match random.chance(0.8) {
            true => 1 + random.index(3),
            false => 0,
        };
        Self {
            clients: self.clients + plain,
            plain,
            pipeline: 1 + random.index(4),
            ..self
        }
    }

    fn with_loose(self) -> Self {
        let mut random = Random::new(self.seed, "loose");
        let cut = random.chance(0.2);
        let is_there = random.chance(0.6);
        let nodes = 0..self.workers.len();
        let threads = nodes.clone().map(|_| match cut {
            true => 0,
            false => random.index(3) as u16,
        });
        let threads = threads.collect();
        let gossip_ms = nodes.map(|_| random.skewed(5, 1_000) as u32).collect();
        let loose = Loose {
            threads,
            gossip_ms,
            cut,
        };
        Self {
            loose: is_there.then_some(loose),
            ..self
        }
    }

    /// A large cluster has little to do, or it would take long.
    fn at_ease(mut self, size: Size) -> Self {
        if self.workers.len() > 5 {
            self.split = 0.0;
            self.trouble_us = self.trouble_us.min(15_000_000);
            self.slow_gossip(50);
        }
        if size != Size::Any {
            self.slow_gossip(200);
            self.think_us = self.think_us.max(100_000);
            self.trouble_us = 10_000_000;
            self.turn_us.1 = self.turn_us.1.min(50);
        }
        self
    }
}

impl Plan {
    fn slow_gossip(&mut self, least_ms: u32) {
        if let Some(loose) = &mut self.loose {
            let all = loose.gossip_ms.iter_mut();
            all.for_each(|ms| *ms = (*ms).max(least_ms));
        }
    }
}

/// Of how many nodes the cluster is made, how many there are, and the most workers
/// that one has; `first` and `nodes` of a small one.
fn counts(seed: u64, size: Size, first: usize, nodes: usize) -> (usize, usize, usize) {
    let mut random = Random::new(seed, "sizes");
    match size {
        Size::Any if random.chance(0.125) => {
            let nodes = 6 + random.index(7);
            (nodes - random.index(nodes / 2), nodes, 2)
        }
        Size::Any => (first, nodes, 3),
        Size::Of(count) => {
            let nodes = count.max(first);
            (first.max(nodes - random.index(nodes / 4 + 1)), nodes, 1)
        }
    }
}

/// Those of the keys, and some of all workers, or of all nodes.
fn some_slots(nodes: usize) -> Vec<u16> {
    let used = KEYS.iter().map(|key| slot_of(key.as_bytes()));
    let step = (SLOTS / (2 * nodes)).min(1_000);
    let mut slots: Vec<u16> = used.chain((0..SLOTS as u16).step_by(step)).collect();
    slots.sort_unstable();
    slots.dedup();
    slots
}
