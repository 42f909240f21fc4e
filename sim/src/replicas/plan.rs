//! What a seed of the world of replicas stands for.

use super::client::level;
use crate::random::Random;
use std::fmt;

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

    pub fn named(name: &str) -> Option<Mode> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
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
        };
        plan.hurry(&mut random);
        plan
    }

    /// What only goes wrong where clients are faster than messages is tried
    /// where they are.
    fn hurry(&mut self, random: &mut Random) {
        let is_cut = self.mode == Mode::Cut;
        let is_ordered = level(self.mode).is_ordered();
        if !(is_cut || is_ordered && random.chance(0.3)) {
            return;
        }
        (self.stay, self.spread) = (true, 0);
        self.clients = random.between(4, 8) as usize;
        self.keys = random.between(2, 3) as usize;
        self.operations = random.between(20, 60);
        self.think_us = random.skewed(100, 1_500);
        self.sync_us = random.skewed(10, 300);
        self.gossip_ms = match is_cut {
            true => random.between(1, 3),
            false => random.between(5, 20),
        } as u32;
        let slow = if is_cut { 20_000 } else { 5_000 };
        let mut delay = || random.skewed(50, slow);
        for row in &mut self.delays {
            row.iter_mut().for_each(|us| *us = delay());
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{self:#?}")
    }
}
