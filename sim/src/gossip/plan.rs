//! What a seed of the world of nodes stands for.

use crate::engine::random::Random;
use crate::oracle::sessions::Promise;
use rufous_kernel::replicate::gossip::Limits;
use rufous_kernel::replicate::level::Level;

/// What clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Elements are added and removed, values written and deleted, and counters changed.
    Shared,
    /// Likewise; there are hashes of counts, too, and nodes make snapshots.
    Saved,
    /// As `Shared`; nodes are away for long, and others start and serve meanwhile.
    Away,
    /// Sessions read and write strings at a level.
    Session(&'static str),
    /// Sessions read and write strings with causal cuts.
    Cut,
    /// As shared, and the clock of one node is ahead by more than others admit. Only where it is named.
    Ahead,
}

impl Mode {
    /// Those that seeds draw from; `Away` is played on request, so that plans of seeds stay what they are.
    pub const ALL: [Mode; 11] = [
        Mode::Shared,
        Mode::Saved,
        Mode::Session("eventual"),
        Mode::Session("monotonic-reads"),
        Mode::Session("monotonic-writes"),
        Mode::Session("writes-follow-reads"),
        Mode::Session("read-your-writes"),
        Mode::Session("pram"),
        Mode::Session("pram+writes-follow-reads"),
        Mode::Session("causal"),
        Mode::Cut,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Mode::Shared => "shared",
            Mode::Saved => "saved",
            Mode::Away => "away",
            Mode::Session(level) => level,
            Mode::Cut => "cut",
            Mode::Ahead => "ahead",
        }
    }

    /// What it counts as, of the modes that seeds draw.
    pub fn drawn(self) -> Mode {
        match self {
            Mode::Away => Mode::Shared,
            other => other,
        }
    }

    pub fn named(name: &str) -> Result<Mode, String> {
        let all = Self::ALL.into_iter().chain([Mode::Away, Mode::Ahead]);
        let found = all.clone().find(|mode| mode.name() == name);
        found.ok_or_else(|| {
            let names: Vec<_> = all.map(Mode::name).collect();
            let names = names.join(", ");
            format!("no mode '{name}'; there are: {names}")
        })
    }

    /// The level of the keyspace.
    pub fn level(self) -> &'static str {
        match self {
            Mode::Session(level) => level,
            _ => "eventual",
        }
    }
}

/// A client at one worker.
#[derive(Clone, Debug)]
pub struct Reader {
    pub node: usize,
    pub worker: usize,
    /// The strings that it writes, too.
    pub writes: Vec<usize>,
}

/// See the module's description. Times are in microseconds.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub mode: Mode,
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
    pub saves: f64,
    /// Between two steps of a snapshot, and bytes in each.
    pub save_us: u64,
    pub save_bytes: usize,
    /// Strings, and the sessions that read and write them.
    pub texts: usize,
    /// Each string is written by one session.
    pub is_apart: bool,
    pub readers: Vec<Reader>,
}

impl Plan {
    pub fn new(seed: u64, mode: Option<Mode>) -> Self {
        let mut random = Random::new(seed, "gossip");
        let nodes = random.between(2, 4) as usize;
        let workers = (0..nodes).map(|_| random.between(1, 3) as usize).collect();
        let all = random.chance(0.6);
        let clock = |random: &mut Random| random.between(0, 4_000_000) as i64 - 2_000_000;
        let kept_bytes = random.skewed(200, 1 << 20) as usize;
        let mut plan = Self {
            seed,
            mode: Mode::Shared,
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
            saves: 0.0,
            save_us: 0,
            save_bytes: 0,
            texts: 0,
            is_apart: false,
            readers: Vec::new(),
        };
        let mut random = Random::new(seed, "gossip's mode");
        let other = *random.pick(&Mode::ALL);
        let own = random.weighted(&[(2, Mode::Shared), (3, other)]);
        plan.mode = mode.unwrap_or(own);
        let mut absence = Random::new(seed, "gossip's absence");
        match plan.mode {
            Mode::Shared => {}
            Mode::Away => plan.be_away(&mut absence),
            Mode::Saved => plan.save_slowly(&mut random),
            Mode::Ahead => plan.lead(&mut random),
            Mode::Session(_) | Mode::Cut => plan.read(&mut random),
        }
        plan
    }

    /// Nodes crash more often, and are away while others start again.
    fn be_away(&mut self, random: &mut Random) {
        self.operations = random.between(60, 200);
        self.think_us = random.skewed(500, 10_000);
        self.away_us = random.skewed(1_000, 60_000);
        self.delay_us = random.skewed(50, 10_000);
        self.crashes = 0.06;
        self.drops = random.weighted(&[(1, 0.0), (1, 0.01)]);
    }

    /// What is deleted has been forgotten before a snapshot that knew of it is complete.
    fn save_slowly(&mut self, random: &mut Random) {
        let nodes = random.between(1, 2) as usize;
        self.workers = (0..nodes).map(|_| random.between(2, 4) as usize).collect();
        self.clocks.truncate(nodes);
        self.rounds = random.between(4, 8) as usize;
        self.operations = random.between(60, 200);
        self.think_us = random.skewed(100, 1_000);
        self.sync_us = random.skewed(10, 300);
        self.gossip_ms = random.between(1, 3) as u32;
        self.ring_us = random.skewed(50, 1_000);
        self.delay_us = random.skewed(50, 1_000);
        self.away_us = random.skewed(1_000, 20_000);
        (self.breaks, self.drops) = (0.0, 0.0);
        (self.crashes, self.saves) = (0.01, 0.05);
        self.save_us = random.skewed(500, 10_000);
        self.save_bytes = random.between(10, 80) as usize;
    }

    /// Others are at most 2 s ahead or behind. What only a dropped node had may be lost, and its changes are late.
    fn lead(&mut self, random: &mut Random) {
        let ahead = random.index(self.clocks.len());
        self.clocks[ahead] = random.between(13_000_000, 15_000_000) as i64;
        self.rounds = random.between(1, 2) as usize;
        self.drops = 0.0;
        // There is an epoch each time for as long as something is held.
        self.gossip_ms = random.between(20, 100) as u32;
    }

    /// Sessions are faster than messages. Some only read: writes of their own would hide what is missing.
    fn read(&mut self, random: &mut Random) {
        (self.threads, self.cut) = (0, self.mode == Mode::Cut);
        self.cut |= self.level().is_ordered();
        // Between nodes an order is promised as long as streams continue: none may overflow.
        self.limits.kept_bytes = 1 << 22;
        self.operations = random.between(100, 400);
        self.think_us = random.skewed(20, 500);
        self.sync_us = random.skewed(10, 100);
        self.gossip_ms = match self.mode {
            Mode::Cut => 1,
            _ => random.between(1, 10) as u32,
        };
        self.ring_us = random.skewed(100, 10_000);
        self.delay_us = random.skewed(1_000, 30_000);
        self.breaks = random.weighted(&[(1, 0.0), (1, 0.005)]);
        self.crashes = random.weighted(&[(2, 0.0), (1, 0.002)]);
        // What only a dropped node had may be lost.
        self.drops = 0.0;
        let writers = random.between(1, 3) as usize;
        self.is_apart = writers == 1 || random.chance(0.5);
        self.texts = match self.is_apart {
            true => 2 * writers,
            false => random.between(2, 3) as usize,
        };
        for at in 0..writers + random.between(1, 3) as usize {
            let node = at % self.workers.len();
            let is_its = |key: &usize| at < writers && !(self.is_apart && key % writers != at);
            self.readers.push(Reader {
                node,
                worker: random.index(self.workers[node]),
                writes: (0..self.texts).filter(is_its).collect(),
            });
        }
    }

    /// Whether clients set and remove deadlines. Not in the plan itself, as saved seeds have its hash.
    pub fn has_deadlines(&self) -> bool {
        matches!(self.seed % 16, 8 | 15)
    }

    /// Whether a node stays away for long in each round, when all clients have long ended.
    pub fn has_partings(&self) -> bool {
        self.mode == Mode::Cut && self.seed % 4 == 1 && self.workers.len() > 2
    }

    /// Whether there is a second keyspace, without causal cuts.
    pub fn has_side(&self) -> bool {
        matches!(self.seed % 32, 22 | 28 | 29 | 31)
    }

    /// Whether all nodes start again in the end.
    pub fn ends_with_starts(&self) -> bool {
        self.seed % 4 == 2
    }

    /// Workers of a node that have a replica of each key of that; 0: all.
    pub fn side_threads(&self) -> u16 {
        (self.seed / 32 % 3) as u16
    }

    /// The readers, where their sessions change the worker.
    pub fn walkers(&self) -> impl Iterator<Item = &Reader> {
        let walk = self.seed % 4 == 3;
        self.readers.iter().filter(move |_| walk)
    }

    /// Before clients begin in a round: streams that begin have no order.
    pub fn rest_us(&self) -> u64 {
        if self.has_partings() { 300_000 } else { 1 }
    }

    fn level(&self) -> Level {
        // invariant: modes name levels that there are
        self.mode.level().parse().expect("a level")
    }

    /// What sessions are promised, those that change their worker, too.
    pub fn promise(&self) -> Option<Promise> {
        let level = || self.level();
        match self.mode {
            Mode::Shared | Mode::Saved | Mode::Away | Mode::Ahead => None,
            Mode::Cut => Some(Promise::Cut),
            // A worker sends the state of a key, and with that what others wrote there: this may come
            // before what they had written elsewhere.
            Mode::Session(_) if !self.is_apart => Some(Promise::Level(level())),
            Mode::Session(_) => Some(Promise::Whole(level())),
        }
    }
}
