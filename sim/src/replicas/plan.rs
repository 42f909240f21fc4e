//! What a seed of the world of replicas stands for.

use super::client::level;
use crate::engine::random::Random;

/// The level that the clients of a run have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// No level: sets, counters and deletions, and what becomes of them.
    Shared,
    /// A level of sessions, by its name.
    Session(&'static str),
    /// Causal over all keys, for clients that stay where they are.
    Cut,
    ReadUncommitted,
    ReadCommitted,
    ItemCut,
}

impl Mode {
    pub const ALL: [Mode; 13] = [
        Mode::Shared,
        Mode::Session("eventual"),
        Mode::Session("monotonic-reads"),
        Mode::Session("monotonic-writes"),
        Mode::Session("writes-follow-reads"),
        Mode::Session("read-your-writes"),
        Mode::Session("pram"),
        Mode::Session("pram+writes-follow-reads"),
        Mode::Session("causal"),
        Mode::Cut,
        Mode::ReadUncommitted,
        Mode::ReadCommitted,
        Mode::ItemCut,
    ];

    /// The name of its level.
    pub fn level(self) -> &'static str {
        match self {
            Mode::Shared => "eventual",
            Mode::Session(name) => name,
            Mode::Cut => "causal",
            Mode::ReadUncommitted => "read-uncommitted",
            Mode::ReadCommitted => "read-committed",
            Mode::ItemCut => "item-cut",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Mode::Shared => "shared",
            Mode::Cut => "cut",
            _ => self.level(),
        }
    }

    pub fn named(name: &str) -> Result<Mode, String> {
        let found = Self::ALL.into_iter().find(|mode| mode.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Mode::name).join(", ");
            format!("no level '{name}'; there are: {names}")
        })
    }

    pub fn has_transactions(self) -> bool {
        matches!(
            self,
            Mode::ReadUncommitted | Mode::ReadCommitted | Mode::ItemCut
        )
    }
}

/// See the module's description. Times are in microseconds.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub mode: Mode,
    pub nodes: usize,
    /// How many of them have a replica of each key; 0: all.
    pub spread: u16,
    pub clients: usize,
    pub keys: usize,
    pub rounds: usize,
    /// Operations of each client in a round.
    pub operations: u64,
    /// Clients talk to the same replica all the time.
    pub stay: bool,
    /// Where each client begins, and whether it only reads; none: anywhere, and
    /// every client writes.
    pub places: Vec<(usize, bool)>,
    pub gossip_ms: u32,
    /// Of each clock: how far it is off, and how much faster it is in a million.
    pub clocks: Vec<(i64, i64)>,
    /// Delay of each link, by sender and receiver.
    pub delays: Vec<Vec<u64>>,
    pub loss: f64,
    pub twice: f64,
    pub resend_us: u64,
    pub think_us: u64,
    pub sync_us: u64,
    /// How likely in a round.
    pub partition: f64,
    pub crash: f64,
    pub snapshot: f64,
    /// Between two steps of a snapshot, and bytes in each.
    pub save_us: u64,
    pub save_bytes: usize,
}

impl Plan {
    pub fn new(seed: u64, mode: Option<Mode>) -> Self {
        let mut random = Random::new(seed, "replicas");
        let own = *random.pick(&Mode::ALL);
        let mode = mode.unwrap_or(own);
        let least = if mode == Mode::Cut { 3 } else { 2 };
        let nodes = random.between(least, 5) as usize;
        let stay = mode == Mode::Cut || random.chance(0.3);
        let all = mode == Mode::Cut || mode.has_transactions() || random.chance(0.7);
        let slow = random.skewed(200, 200_000);
        let clock = |random: &mut Random| {
            let off = random.skewed(1, 5_000_000) as i64;
            let sign = if random.chance(0.5) { 1 } else { -1 };
            (off * sign, random.below(400) as i64 - 200)
        };
        let delays = |random: &mut Random| (0..nodes).map(|_| random.skewed(50, slow)).collect();
        let mut plan = Self {
            seed,
            mode,
            nodes,
            spread: if all { 0 } else { random.between(1, 4) as u16 },
            clients: random.between(2, 6) as usize,
            keys: random.between(1, 4) as usize,
            rounds: random.between(2, 6) as usize,
            operations: random.between(4, 25),
            stay,
            places: Vec::new(),
            gossip_ms: random.skewed(1, 100) as u32,
            clocks: (0..nodes).map(|_| clock(&mut random)).collect(),
            delays: (0..nodes).map(|_| delays(&mut random)).collect(),
            loss: if random.chance(0.5) { 0.1 } else { 0.0 },
            twice: if random.chance(0.5) { 0.1 } else { 0.0 },
            resend_us: random.skewed(1_000, 200_000),
            think_us: random.skewed(100, 100_000),
            sync_us: random.skewed(10, 20_000),
            partition: if random.chance(0.5) { 0.6 } else { 0.0 },
            crash: if random.chance(0.5) { 0.3 } else { 0.0 },
            snapshot: if random.chance(0.5) { 0.7 } else { 0.0 },
            save_us: 100,
            save_bytes: 200,
        };
        plan.hurry(&mut random);
        plan.save_slowly(&mut random);
        plan
    }

    /// Some faults occur only if clients are faster than messages, and are visible
    /// only to clients that do not write: their own writes would hide what is
    /// missing. This plan provides both.
    fn hurry(&mut self, random: &mut Random) {
        let is_cut = self.mode == Mode::Cut;
        let is_ordered = level(self.mode).is_ordered();
        if !(is_cut && random.chance(0.8) || is_ordered && random.chance(0.4)) {
            return;
        }
        (self.stay, self.spread) = (true, 0);
        (self.loss, self.twice) = (0.0, 0.0);
        self.keys = random.between(2, 3) as usize;
        self.operations = random.between(40, 100);
        self.think_us = random.skewed(50, 500);
        self.sync_us = random.skewed(10, 100);
        match is_cut {
            true => self.one_slow_link(random),
            false => self.slow_links(random),
        }
    }

    /// What is deleted has been forgotten before a snapshot that knew of it is
    /// complete.
    fn save_slowly(&mut self, random: &mut Random) {
        if self.mode != Mode::Shared || random.chance(0.5) {
            return;
        }
        self.rounds = random.between(4, 8) as usize;
        self.operations = random.between(20, 50);
        self.think_us = random.skewed(500, 3_000);
        self.sync_us = random.skewed(10, 300);
        self.gossip_ms = random.between(1, 3) as u32;
        (self.crash, self.snapshot, self.partition) = (0.8, 1.0, 0.0);
        (self.loss, self.resend_us) = (0.0, 1_000);
        self.save_us = random.skewed(500, 10_000);
        self.save_bytes = random.between(10, 80) as usize;
        for row in &mut self.delays {
            row.iter_mut().for_each(|us| *us = random.skewed(50, 1_000));
        }
    }

    /// Parts of a batch arrive one after the other, and clients read
    /// meanwhile.
    fn slow_links(&mut self, random: &mut Random) {
        self.gossip_ms = random.between(3, 10) as u32;
        for row in &mut self.delays {
            row.iter_mut()
                .for_each(|us| *us = random.skewed(2_000, 30_000));
        }
        let readers = (0..random.between(2, 5)).map(|n| (1 + n as usize % (self.nodes - 1), true));
        self.places = [(0, false)].into_iter().chain(readers).collect();
        self.clients = self.places.len();
    }

    /// The last node receives writes of other nodes before the ones that these depend on.
    fn one_slow_link(&mut self, random: &mut Random) {
        self.gossip_ms = 1;
        for row in &mut self.delays {
            row.iter_mut().for_each(|us| *us = random.skewed(50, 500));
        }
        let last = self.nodes - 1;
        self.delays[0][last] = random.between(10_000, 60_000);
        self.places = vec![(0, false), (1, false), (last, true), (last, true)];
        self.clients = self.places.len();
    }
}
