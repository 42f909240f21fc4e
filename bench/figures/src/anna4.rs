//! Anna's Figures 4 and 5 [Anna §VIII-A, §VIII-B]: updates alone, requests made beforehand, under high
//! and low contention, on one thread and on two, beside maps that threads share.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use clap::Args;
use rufous_base::rng::Rng;
use serde::Serialize;

use super::anna4_pages;
use super::constants::Constants;
use super::drive::{Contestant, Reach, Split, Window};
use super::options::Common;
use super::peers::{self, IDEALS, JOINING, PEERS};
use super::requests::{Key, Popularity};
use super::rufous;
use rufous_bench::progress::Progress;
use rufous_bench::stats::Summary;

/// Requests of a thread, run again and again.
const REQUESTS: usize = 1 << 20;
pub(crate) const SKEWS: [f64; 2] = [4.0, 0.5];
/// The most threads: two processors are what it is written for.
pub(crate) const THREADS: usize = 2;
/// About what a key takes in one store.
const BYTES_PER_KEY: u64 = 1_250;
/// Copies of all keys that are there at a time, with two threads.
const COPIES: u64 = 14;

pub(crate) const ONE_THREAD: &str = "Rufous";
pub(crate) const ONE_REPLICA: &str = "Rufous, 1 replica";
pub(crate) const THREE_REPLICAS: &str = "Rufous, 3 replicas (2 of 2)";
pub(crate) const FULL: &str = "Rufous, full replication";

/// Updates in process beside concurrent maps.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    pub common: Common,
    /// Keys of 8 B, with values of 1 KiB [default: 1000000, quick 20000]
    #[arg(long)]
    pub keys: Option<u64>,
    /// Windows per store and mix [default: 9, quick 2]
    #[arg(long)]
    pub windows: Option<usize>,
    /// Length of a window in ms [default: 400, quick 250]
    #[arg(long)]
    pub window_ms: Option<u64>,
    /// Only stores whose names contain this, to look closer at them; writes no pages
    #[arg(long, value_name = "TEXT")]
    pub store: Option<String>,
}

impl Options {
    fn wants(&self, store: &str) -> bool {
        self.store.as_ref().is_none_or(|text| store.contains(text))
    }

    pub(crate) fn keys(&self) -> u64 {
        self.common.pick(self.keys, 1_000_000, 20_000)
    }

    pub(crate) fn windows(&self) -> usize {
        self.common.pick(self.windows, 9, 2).max(1)
    }

    pub(crate) fn window(&self) -> Duration {
        Duration::from_millis(self.common.pick(self.window_ms, 400, 250))
    }
}

/// A store under one mix.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub store: String,
    pub skew: f64,
    pub threads: usize,
    /// Million updates per second, of each window.
    pub rates: Vec<f64>,
    /// Likewise per second of CPU time: as if each thread had its processor to itself.
    pub cpu_rates: Vec<f64>,
    pub cpu_ns: Summary,
    pub others_cores: f64,
    /// CPU time, and what it was for, of all windows.
    pub cpu_total_ns: f64,
    pub operations: f64,
    pub split: Split,
}

/// All that was measured.
#[derive(Debug)]
pub(crate) struct Measured {
    pub rows: Vec<Row>,
    pub constants: Constants,
}

impl Measured {
    pub(crate) fn row(&self, store: &str, skew: f64, threads: usize) -> Option<&Row> {
        let is = |row: &&Row| row.store == store && row.skew == skew && row.threads == threads;
        self.rows.iter().find(is)
    }

    /// The fastest of some stores under a mix.
    pub(crate) fn best<'a>(
        &'a self,
        stores: &[&str],
        skew: f64,
        threads: usize,
    ) -> Option<&'a Row> {
        let rows = stores
            .iter()
            .filter_map(|store| self.row(store, skew, threads));
        rows.max_by(|a, b| a.rate().total_cmp(&b.rate()))
    }
}

impl Row {
    fn of(contestant: &Contestant, skew: f64, windows: &[Window], parts: Option<&[f64]>) -> Self {
        let threads = || windows.iter().flat_map(|window| &window.threads);
        let split = threads().fold(Split::default(), |sum, ran| sum.plus(&ran.split));
        Self {
            store: contestant.name.clone(),
            skew,
            threads: contestant.threads(),
            rates: windows
                .iter()
                .map(|w| w.rate(|ran| ran.wall_ns, parts))
                .collect(),
            cpu_rates: windows
                .iter()
                .map(|w| w.rate(|ran| ran.cpu_ns, parts))
                .collect(),
            cpu_ns: Summary::of(windows.iter().map(Window::cpu_ns_per_operation)),
            others_cores: Summary::of(windows.iter().map(|w| w.others_cores)).median,
            cpu_total_ns: threads().map(|ran| ran.cpu_ns).sum(),
            operations: threads().map(|ran| ran.operations).sum(),
            split,
        }
    }

    pub(crate) fn rate(&self) -> f64 {
        Summary::of(self.rates.iter().copied()).median
    }

    pub(crate) fn cpu_rate(&self) -> f64 {
        Summary::of(self.cpu_rates.iter().copied()).median
    }

    /// Window by window.
    pub(crate) fn ratio_to(&self, other: &Self) -> Summary {
        Summary::of(self.rates.iter().zip(&other.rates).map(|(a, b)| a / b))
    }

    pub(crate) fn cpu_ratio_to(&self, other: &Self) -> Summary {
        Summary::of(
            self.cpu_rates
                .iter()
                .zip(&other.cpu_rates)
                .map(|(a, b)| a / b),
        )
    }
}

/// Requests of all threads under one mix.
struct Mix {
    skew: f64,
    all: Vec<Vec<Key>>,
    own: Vec<Vec<Key>>,
    /// Of all requests, those for each owner's keys.
    parts: Vec<f64>,
}

impl Mix {
    fn new(keys: u64, skew: f64, threads: usize) -> Self {
        let popularity = Popularity::new(keys, skew);
        let mut rng = Rng::new(skew.to_bits());
        let all = popularity.requests_each(threads, REQUESTS, &mut rng);
        let own = |thread| popularity.own_requests(REQUESTS, &mut rng, thread, threads);
        Self {
            skew,
            all,
            own: (0..threads).map(own).collect(),
            parts: popularity.parts(threads),
        }
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let machine = rufous_bench::procfs::Machine::read();
    if machine.cores < THREADS {
        bail!(
            "it takes {THREADS} processors, and there is {}",
            machine.cores
        );
    }
    let needed = COPIES * BYTES_PER_KEY * options.keys();
    let available = (rufous_bench::procfs::available_bytes()?) / 10 * 9;
    ensure!(
        needed <= available,
        "{} MiB of memory needed: fewer --keys, or stop what else runs",
        needed >> 20
    );
    let progress = Progress::new("anna4", (THREADS * SKEWS.len()) as u64);
    progress.doing("what processors cost one another");
    let constants = Constants::measure()?;
    let mut rows = Vec::new();
    for threads in 1..=THREADS {
        rows.extend(measure(options, threads, &progress)?);
    }
    drop(progress);
    let measured = Measured { rows, constants };
    anna4_pages::show(options, &machine, &measured)
}

/// All stores with so many threads.
fn measure(options: &Options, threads: usize, progress: &Progress) -> Result<Vec<Row>> {
    let keys = options.keys();
    progress.doing(&format!("filling the stores for {threads} threads"));
    let mut contestants = contestants(options, threads)?;
    let mut rows = Vec::new();
    for skew in SKEWS {
        let mix = Mix::new(keys, skew, threads);
        rows.extend(interleave(options, &mut contestants, &mix, progress)?);
        progress.advance(1);
    }
    // What was measured has to have been replication, too.
    for contestant in &mut contestants {
        if contestant.reach == Reach::All {
            progress.doing(&format!("comparing the replicas of {}", contestant.name));
            rufous::converge(&mut contestant.workers(), keys)?;
        }
    }
    Ok(rows)
}

fn contestants(options: &Options, threads: usize) -> Result<Vec<Contestant>> {
    let (keys, mut all) = (options.keys(), Vec::new());
    for (name, reach) in IDEALS {
        if options.wants(name) && (threads > 1 || reach == Reach::All) {
            all.push(peers::ideal(name, reach, keys, threads));
        }
    }
    // By CPU time two threads do twice that, and memory is for the others then.
    if threads == 1 && options.wants(JOINING) {
        all.push(peers::joining(keys, threads));
    }
    for (at, name) in PEERS.iter().enumerate() {
        if options.wants(name) {
            all.push(peers::peer(at, keys, threads)?);
        }
    }
    let variants: &[(&str, Reach, u16)] = match threads {
        1 => &[(ONE_THREAD, Reach::Own, 1)],
        _ => &[
            (ONE_REPLICA, Reach::Own, 1),
            (THREE_REPLICAS, Reach::All, 3),
            (FULL, Reach::All, 0),
        ],
    };
    for &(name, reach, replicas) in variants {
        if !options.wants(name) {
            continue;
        }
        let workers = rufous::workers(keys, threads, replicas)?;
        all.push(rufous::contestant(name, reach, workers));
    }
    Ok(all)
}

/// Windows in turn, after a short one each that is not counted.
fn interleave(
    options: &Options,
    contestants: &mut [Contestant],
    mix: &Mix,
    progress: &Progress,
) -> Result<Vec<Row>> {
    let mut windows = vec![Vec::new(); contestants.len()];
    for round in 0..=options.windows() {
        for (contestant, windows) in contestants.iter_mut().zip(&mut windows) {
            let (name, threads) = (&contestant.name, contestant.threads());
            progress.doing(&format!("zipf {}, {threads} threads: {name}", mix.skew));
            let requests = match contestant.reach {
                Reach::All => &mix.all,
                Reach::Own => &mix.own,
            };
            let time = match round {
                0 => options.window() / 2,
                _ => options.window(),
            };
            let window = contestant.window(requests, time)?;
            if round > 0 {
                windows.push(window);
            }
        }
    }
    let rows = contestants
        .iter()
        .zip(&windows)
        .map(|(contestant, windows)| {
            let parts = (contestant.reach == Reach::Own).then_some(&mix.parts[..]);
            let row = Row::of(contestant, mix.skew, windows, parts);
            progress.say(&format!(
                "zipf {}, {} threads, {}: {:.2} M/s, {:.1} CPU-ns per update",
                mix.skew,
                row.threads,
                row.store,
                row.rate(),
                row.cpu_ns.median
            ));
            row
        });
    Ok(rows.collect())
}
