//! What a seed stands for: the size of the node, its settings, the clients'
//! requests, and which faults occur how often.

mod varieties;

use crate::engine::random::Random;
use crate::history::Kind;
use std::fmt;
pub use varieties::{BOUND_BYTES, BOUND_MS};

/// How much of what was acknowledged survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// No log at all: a restart finds nothing.
    Off,
    No,
    Everysec,
    Always,
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Mode::Off => "off",
            Mode::No => "no",
            Mode::Everysec => "everysec",
            Mode::Always => "always",
        }
    }
}

/// How a node comes to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Asked to stop, and waited for.
    Clean,
    /// The process ends, the machine keeps running.
    Kill,
    /// The machine is gone.
    PowerLoss,
}

/// An end of the node, and a start after it.
#[derive(Clone, Debug)]
pub struct Crash {
    /// Happens after this many replies, and this many microseconds.
    pub after_replies: u64,
    pub delay_us: u64,
    pub ending: Ending,
    pub down_us: u64,
    pub workers: usize,
    /// Bits of files that change while the node is down.
    pub flips: u32,
    /// The next start is cut short by a kill after this many microseconds.
    pub during_load_us: Option<u64>,
}

/// Probabilities per request, and times.
#[derive(Clone, Debug, Default)]
pub struct DiskFaults {
    pub write_error: f64,
    pub sync_error: f64,
    /// Writes may end up in part, where the machine loses power.
    pub torn: f64,
    /// The disk is full in these spans, counted in answered commands.
    pub full: Vec<(u64, u64)>,
    pub write_us: (u64, u64),
    pub sync_us: (u64, u64),
    /// Unsynced names survive in any combination, not as a prefix.
    pub unordered_names: bool,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub workers: usize,
    pub clients: usize,
    pub commands_per_client: u64,
    pub pipeline: u64,
    pub think_us: u64,
    pub network_us: (u64, u64),
    pub message_us: (u64, u64),
    /// What a turn of a worker takes.
    pub turn_us: (u64, u64),
    /// How often a request or reply is cut into pieces on its way.
    pub split: f64,
    pub disconnect: f64,
    pub texts: usize,
    pub counters: usize,
    pub expiring: usize,
    pub groups: usize,
    pub pairs: usize,
    pub hashes: usize,
    pub lists: usize,
    pub sets: usize,
    pub sorted: usize,
    pub ids: usize,
    pub rankings: usize,
    pub bags: usize,
    pub bounded: usize,
    /// How often an update is quiet.
    pub quiet: f64,
    /// Bytes of a long element.
    pub long: u64,
    /// How many of the queues are sorted sets.
    pub sorted_queues: f64,
    /// Up to how many elements a collection is kept packed.
    pub packed: usize,
    /// Large keys that are never read, so that a snapshot takes many steps.
    pub ballast: u64,
    pub mode: Mode,
    /// `BGSAVE`, `BGREWRITEAOF`, `CONFIG SET`: microseconds between.
    pub operator_us: u64,
    /// The operator changes `appendfsync`.
    pub mode_changes: bool,
    pub segment_bytes: u64,
    pub maxmemory: Option<u64>,
    pub policy: &'static str,
    pub crashes: Vec<Crash>,
    /// When the wall clock jumps, and by how many seconds.
    pub jumps: Vec<(u64, i64)>,
    pub disk: DiskFaults,
    pub last: Ending,
    pub last_workers: usize,
    /// Earlier saves that are kept.
    pub retention: u64,
    /// Whether there are lattice keyspaces, and what their clients do together.
    pub lattice: bool,
    pub lattice_commands: u64,
}

/// What the world can do by now; tests narrow it.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// The mode that all seeds have.
    pub mode: Option<Mode>,
    /// The only type that there is.
    pub only: Option<Kind>,
    /// See [`Plan::sorted_queues`].
    pub sorted_queues: Option<f64>,
    /// Whether all runs have lattice keyspaces, or none.
    pub lattice: Option<bool>,
    /// The wall clock of all runs jumps, by less than what refuses writes of lattice keys, and their collections have
    /// deadlines.
    pub small_jumps: bool,
}

/// Of runs without [`Limits::small_jumps`].
const MOST_LATTICE_COMMANDS: u64 = 400;

impl Plan {
    /// See [`Limits::small_jumps`].
    pub fn has_small_jumps(&self) -> bool {
        self.lattice_commands > MOST_LATTICE_COMMANDS
    }

    pub fn new(seed: u64, limits: &Limits) -> Self {
        let mut r = Random::new(seed, "plan");
        let workers = r.between(1, 4) as usize;
        let mode = Self::mode(&mut r);
        let mode = limits.mode.unwrap_or(mode);
        let clients = r.between(2, 8) as usize;
        let commands_per_client = 240 / clients as u64;
        let total = commands_per_client * clients as u64;
        let crashes = Self::crashes(&mut r, total, workers);
        let (maxmemory, policy) = Self::memory(&mut r);
        let ballast = match maxmemory {
            None => r.weighted(&[(3, 0), (1, 100), (1, 300)]),
            Some(_) => 0,
        };
        let mut plan = Self {
            seed,
            workers,
            clients,
            commands_per_client,
            pipeline: r.weighted(&[(3, 1), (2, 2), (2, 4), (1, 8)]),
            think_us: r.skewed(50, 100_000),
            network_us: (10, r.skewed(20, 2_000)),
            message_us: (1, r.skewed(2, 1_000)),
            turn_us: (1, r.skewed(20, 2_000)),
            split: r.weighted(&[(2, 0.0), (2, 0.1), (1, 0.7)]),
            disconnect: r.weighted(&[(3, 0.0), (2, 0.02)]),
            texts: r.between(1, 3) as usize,
            counters: r.between(0, 2) as usize,
            expiring: r.between(0, 2) as usize,
            groups: r.between(0, 2) as usize,
            pairs: r.between(0, 2) as usize,
            hashes: 0,
            lists: 0,
            sets: 0,
            sorted: 0,
            ids: 0,
            rankings: 0,
            bags: 0,
            bounded: 0,
            quiet: 0.0,
            long: 1_000,
            sorted_queues: 0.0,
            packed: 128,
            ballast,
            mode,
            operator_us: r.skewed(20_000, 3_000_000),
            mode_changes: r.chance(0.2),
            segment_bytes: r.skewed(4 << 10, 64 << 10),
            maxmemory,
            policy,
            crashes,
            jumps: Self::jumps(&mut r),
            disk: Self::disk(&mut r, total),
            last: r.weighted(&[
                (2, Ending::Clean),
                (2, Ending::Kill),
                (1, Ending::PowerLoss),
            ]),
            last_workers: Self::next_workers(&mut r, workers),
            retention: r.weighted(&[(2, 0), (1, 1), (1, 3)]),
            lattice: false,
            lattice_commands: 0,
        };
        plan.add_collections();
        plan.add_types();
        plan.add_lattice();
        plan.vary(limits);
        plan.narrow(limits);
        plan
    }

    fn narrow(&mut self, limits: &Limits) {
        if let Some(kind) = limits.only {
            self.keep_only(kind);
        }
        self.sorted_queues = limits.sorted_queues.unwrap_or(self.sorted_queues);
        self.lattice = limits.lattice.unwrap_or(self.lattice);
        if limits.small_jumps {
            let mut r = Random::new(self.seed, "small jumps");
            self.lattice_commands = r.between(MOST_LATTICE_COMMANDS + 1, 2_000);
            // Back, so that stamps lead.
            let by = r.between(3, 9) as i64;
            self.jumps = vec![(r.skewed(10_000, 400_000), -by)];
            if r.chance(0.5) {
                self.jumps
                    .push((r.below(6_000_000), r.between(0, 18) as i64 - 9));
            }
        }
        if self.lattice {
            self.make_room_for_replicas();
        }
    }

    /// What is refused for want of memory shall be some writes, not all.
    fn make_room_for_replicas(&mut self) {
        let mut r = Random::new(self.seed, "room for replicas");
        let room = r.skewed(4 << 10, 128 << 10);
        self.maxmemory = self.maxmemory.map(|limit| limit + room);
    }

    /// Claret's types, quiet updates, long elements, and what queues are.
    fn add_types(&mut self) {
        let mut r = Random::new(self.seed, "types");
        let share = r.weighted(&[(2, 0.0), (2, 0.3), (1, 0.7)]);
        let kinds = [
            &mut self.ids,
            &mut self.rankings,
            &mut self.bags,
            &mut self.bounded,
        ];
        for kind in kinds {
            *kind = usize::from(r.chance(share)) + usize::from(r.chance(share / 2.0));
        }
        self.quiet = r.weighted(&[(1, 0.0), (2, 0.1), (1, 0.5)]);
        // The longer ones make chunks of 64 KiB.
        self.long = r.weighted(&[(3, 1_000), (1, 5_000)]);
        self.sorted_queues = r.weighted(&[(1, 0.0), (2, 0.5), (1, 1.0)]);
    }

    fn add_lattice(&mut self) {
        let mut r = Random::new(self.seed, "lattice keyspaces");
        self.lattice = r.chance(0.3);
        self.lattice_commands = r.skewed(60, MOST_LATTICE_COMMANDS);
    }

    fn keep_only(&mut self, kind: Kind) {
        (self.texts, self.counters, self.expiring) = (0, 0, 0);
        (self.groups, self.pairs) = (0, 0);
        (self.hashes, self.lists, self.sets, self.sorted) = (0, 0, 0, 0);
        (self.ids, self.rankings, self.bags, self.bounded) = (0, 0, 0, 0);
        *match kind {
            Kind::Text => &mut self.texts,
            Kind::Counter => &mut self.counters,
            Kind::Expiring => &mut self.expiring,
            Kind::Group => &mut self.groups,
            Kind::Pair => &mut self.pairs,
            Kind::Hash => &mut self.hashes,
            Kind::List => &mut self.lists,
            Kind::Set => &mut self.sets,
            Kind::Sorted => &mut self.sorted,
            Kind::Ids => &mut self.ids,
            Kind::Ranking => &mut self.rankings,
            Kind::Bag => &mut self.bags,
            Kind::Bounded => &mut self.bounded,
        } = 2;
    }

    /// Some runs have texts only, some nearly nothing but collections.
    fn add_collections(&mut self) {
        let mut r = Random::new(self.seed, "collections");
        let share = r.weighted(&[(2, 0.0), (3, 0.4), (1, 0.8)]);
        if share == 0.0 {
            return;
        }
        if r.chance(0.6) {
            self.texts = 1;
            (self.counters, self.expiring, self.groups, self.pairs) = (0, 0, 0, 0);
        }
        let kinds = [
            &mut self.hashes,
            &mut self.lists,
            &mut self.sets,
            &mut self.sorted,
        ];
        for kind in kinds {
            *kind = usize::from(r.chance(share)) + usize::from(r.chance(share / 2.0));
        }
        self.packed = r.weighted(&[(1, 0), (1, 1), (1, 2), (2, 4), (2, 128)]);
    }

    fn next_workers(r: &mut Random, workers: usize) -> usize {
        if r.chance(0.3) {
            r.between(1, 4) as usize
        } else {
            workers
        }
    }

    fn mode(r: &mut Random) -> Mode {
        r.weighted(&[
            (1, Mode::Off),
            (3, Mode::No),
            (6, Mode::Everysec),
            (10, Mode::Always),
        ])
    }

    fn crashes(r: &mut Random, total: u64, workers: usize) -> Vec<Crash> {
        let crashes = r.weighted(&[(2, 0), (4, 1), (2, 2), (1, 3)]);
        let flips = r.chance(0.1);
        (0..crashes)
            .map(|n| Self::crash(r, total * n / crashes, total / crashes, workers, flips))
            .collect()
    }

    fn crash(r: &mut Random, from: u64, span: u64, workers: usize, flips: bool) -> Crash {
        Crash {
            after_replies: from + r.below(span),
            delay_us: r.skewed(1, 20_000),
            ending: r.weighted(&[
                (1, Ending::Clean),
                (4, Ending::Kill),
                (6, Ending::PowerLoss),
            ]),
            down_us: r.skewed(1_000, 5_000_000),
            workers: Self::next_workers(r, workers),
            flips: if flips { r.between(1, 3) as u32 } else { 0 },
            during_load_us: r.chance(0.2).then(|| r.skewed(100, 50_000)),
        }
    }

    fn memory(r: &mut Random) -> (Option<u64>, &'static str) {
        if !r.chance(0.15) {
            return (None, "noeviction");
        }
        let policies = [
            "noeviction",
            "allkeys-lru",
            "allkeys-lfu",
            "allkeys-random",
            "volatile-ttl",
            "volatile-lru",
        ];
        (
            Some(r.between(1_500, 12_000)),
            policies[r.index(policies.len())],
        )
    }

    fn jumps(r: &mut Random) -> Vec<(u64, i64)> {
        if !r.chance(0.3) {
            return Vec::new();
        }
        let count = r.between(1, 4);
        (0..count)
            .map(|_| (r.below(6_000_000), r.between(0, 7_200) as i64 - 3_600))
            .collect()
    }

    fn disk(r: &mut Random, total: u64) -> DiskFaults {
        let fails = r.chance(0.25);
        let full = r.chance(0.2);
        let rate = |r: &mut Random, fails: bool| {
            if fails && r.chance(0.6) { 0.02 } else { 0.0 }
        };
        let start = r.below(total);
        DiskFaults {
            write_error: rate(r, fails),
            sync_error: rate(r, fails),
            torn: r.weighted(&[(1, 0.0), (2, 0.5), (1, 1.0)]),
            full: if full {
                vec![(start, start + r.between(1, 60))]
            } else {
                Vec::new()
            },
            write_us: (5, r.skewed(20, 2_000)),
            sync_us: (100, r.skewed(500, 200_000)),
            unordered_names: r.chance(0.5),
        }
    }

    /// Whether a restart may lose the end of each worker's log.
    pub fn may_lose(&self) -> bool {
        self.mode != Mode::Always
            || self.mode_changes
            || self.crashes.iter().any(|crash| crash.flips > 0)
    }

    pub fn evicts(&self) -> bool {
        self.maxmemory.is_some() && self.policy != "noeviction"
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}: {} workers, appendfsync {}, segments of {} bytes, memory limit {:?} ({})",
            self.seed,
            self.workers,
            self.mode.name(),
            self.segment_bytes,
            self.maxmemory,
            self.policy
        )?;
        writeln!(
            f,
            "  {} clients with {} commands each, up to {} at a time, {} us between, lost {}",
            self.clients, self.commands_per_client, self.pipeline, self.think_us, self.disconnect
        )?;
        writeln!(
            f,
            "  {} texts, {} counters, {} expiring keys, {} groups, {} pairs, {} large ones",
            self.texts, self.counters, self.expiring, self.groups, self.pairs, self.ballast
        )?;
        if self.lattice {
            let commands = self.lattice_commands;
            writeln!(f, "  {commands} commands on lattice keyspaces")?;
        }
        writeln!(
            f,
            "  {} hashes, {} lists, {} sets, {} sorted sets, packed up to {} elements, long ones of {} bytes",
            self.hashes, self.lists, self.sets, self.sorted, self.packed, self.long
        )?;
        writeln!(
            f,
            "  {} unique identifiers, {} rankings, {} bags, {} bounded counters, quiet {}, sorted queues {}",
            self.ids, self.rankings, self.bags, self.bounded, self.quiet, self.sorted_queues
        )?;
        writeln!(
            f,
            "  network {:?} us, between workers {:?} us, cut {}, operator each {} us, changes appendfsync: {}",
            self.network_us, self.message_us, self.split, self.operator_us, self.mode_changes
        )?;
        writeln!(f, "  {:?}", self.disk)?;
        for crash in &self.crashes {
            writeln!(f, "  {crash:?}")?;
        }
        for (at, seconds) in &self.jumps {
            writeln!(f, "  at {at} us the wall clock jumps by {seconds} s")?;
        }
        writeln!(
            f,
            "  last: {:?}, {} workers; {} earlier saves kept",
            self.last, self.last_workers, self.retention
        )
    }
}
