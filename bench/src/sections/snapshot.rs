//! How far latency and memory move while a snapshot of a big data set is written under load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use serde::Serialize;
use serde_json::json;

use super::durable::{PAGE, info, number, order};
use super::{Context, SHAPE, command};
use crate::loadgen::keys::Keys;
use crate::loadgen::latency::Latency;
use crate::loadgen::paced::{self, Lane, Until};
use crate::loadgen::source::Mix;
use crate::loadgen::template::Command;
use crate::measure::preload;
use crate::options::RUFOUS;
use crate::procfs;
use crate::progress::Progress;
use crate::report::Report;
use crate::servers::Server;
use crate::stats::{Summary, Target};
use crate::table::Table;

/// Connections, each with one request a millisecond: 20,000 requests per second.
const LANES: u32 = 20;
const INTERVAL: Duration = Duration::from_millis(1);
const GETS: u64 = 4;
const SETS: u64 = 1;
/// Of p99 and of p99.9 during a snapshot to those without.
const LATENCY: Target = Target::AtMost(2.0);
/// Percent of resident memory.
const MEMORY: Target = Target::AtMost(5.0);
const LOOK: Duration = Duration::from_millis(20);
/// A snapshot that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(600);
/// For rehashing and the allocator, after the keys were loaded.
const SETTLE: Duration = Duration::from_secs(2);

/// One server, one stretch without and one with a snapshot.
#[derive(Clone, Copy, Serialize)]
struct Trial {
    quiet_ms: [f64; 3],
    during_ms: [f64; 3],
    longest_ms: f64,
    growth_percent: f64,
    seconds: f64,
    requests: u64,
}

impl Trial {
    fn moved(&self, percentile: usize) -> f64 {
        self.during_ms[percentile] / self.quiet_ms[percentile]
    }
}

/// All trials of a server.
#[derive(Serialize)]
struct Outcome {
    server: String,
    trials: Vec<Trial>,
    p99_moved: Summary,
    p999_moved: Summary,
    growth_percent: Summary,
}

impl Outcome {
    fn new(server: &str, trials: Vec<Trial>) -> Self {
        let of = |field: fn(&Trial) -> f64| Summary::of(trials.iter().map(field));
        Self {
            server: server.to_owned(),
            p99_moved: of(|trial| trial.moved(1)),
            p999_moved: of(|trial| trial.moved(2)),
            growth_percent: of(|trial| trial.growth_percent),
            trials,
        }
    }

    fn median(&self, field: impl Fn(&Trial) -> f64) -> f64 {
        Summary::of(self.trials.iter().map(field)).median
    }

    /// Percentiles without and during, then the three figures with targets, then the rest.
    fn cells(&self) -> Vec<String> {
        let mut cells = vec![self.server.clone()];
        for i in 0..3 {
            let quiet = self.median(|trial| trial.quiet_ms[i]);
            let during = self.median(|trial| trial.during_ms[i]);
            cells.push(format!("{quiet:.2} → {during:.2}"));
        }
        cells.push(format!("{:.1}", self.median(|trial| trial.longest_ms)));
        cells.push(format!("{:.2}", self.p99_moved.median));
        cells.push(format!("{:.2}", self.p999_moved.median));
        cells.push(format!("{:.1}", self.growth_percent.median));
        cells.push(format!("{:.1}", self.median(|trial| trial.seconds)));
        cells
    }
}

pub fn run(context: &mut Context) -> Result<Report> {
    let specs = context.options.durable_contestants()?;
    let keys = context.options.durable_keys();
    let (rounds, seconds) = if context.options.quick {
        (1, 2)
    } else {
        (3, 8)
    };
    let progress = Progress::new("snapshot", (specs.len() * (1 + rounds)) as u64);
    let mut servers = Vec::new();
    for spec in &specs {
        progress.doing(&format!("{}: loading {keys} keys", spec.name));
        let server = Server::start(spec)?;
        context.note_version(&server)?;
        preload(&server, Command::Set, SHAPE, 0..keys)?;
        servers.push(server);
        progress.advance(1);
    }
    std::thread::sleep(SETTLE);
    let mut trials = vec![Vec::new(); servers.len()];
    for _ in 0..rounds {
        for (server, trials) in servers.iter().zip(&mut trials) {
            progress.doing(&format!("{}: a snapshot", server.name));
            let trial = trial(server, keys, Duration::from_secs(seconds))?;
            progress.say(&format!(
                "{}: p99 × {:.2}, p99.9 × {:.2}, memory + {:.1} %, {:.1} s",
                server.name,
                trial.moved(1),
                trial.moved(2),
                trial.growth_percent,
                trial.seconds,
            ));
            trials.push(trial);
            progress.advance(1);
        }
    }
    let named = servers.iter().zip(trials);
    let outcomes: Vec<Outcome> = named
        .map(|(server, trials)| Outcome::new(&server.name, trials))
        .collect();
    Ok(report(&outcomes, keys, rounds))
}

fn lanes(server: &Server, keys: u64) -> Result<Vec<Lane>> {
    let mix = Mix::new(
        &[(GETS, Command::Get), (SETS, Command::Set)],
        SHAPE,
        Keys::Uniform(keys),
        1,
    );
    (0..LANES)
        .map(|i| {
            let (source, delay) = (Box::new(mix.reseeded(i.into())), INTERVAL / LANES * i);
            Lane::connect(server.addr, source, INTERVAL, delay)
        })
        .collect()
}

fn together(lanes: &[Lane]) -> Result<Latency> {
    let mut all = Latency::new()?;
    for lane in lanes {
        all.merge(lane.latency())?;
    }
    Ok(all)
}

fn trial(server: &Server, keys: u64, quiet: Duration) -> Result<Trial> {
    let mut before = lanes(server, keys)?;
    paced::run(&mut before, Until::After(quiet))?;
    let mut during = lanes(server, keys)?;
    let over = AtomicBool::new(false);
    let watched = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let seen = watch(server);
            over.store(true, Ordering::Relaxed);
            seen
        });
        paced::run(&mut during, Until::Told(&over))?;
        watcher
            .join()
            .unwrap_or_else(|_| Err(anyhow!("the watcher of the snapshot ended early")))
    });
    let (growth, time) = watched?;
    let (before, during) = (together(&before)?, together(&during)?);
    let percentiles = |latency: &Latency| [50.0, 99.0, 99.9].map(|p| latency.percentile_ms(p));
    Ok(Trial {
        quiet_ms: percentiles(&before),
        during_ms: percentiles(&during),
        longest_ms: during.max_ms(),
        growth_percent: growth * 100.0,
        seconds: time.as_secs_f64(),
        requests: during.count(),
    })
}

/// Has a snapshot written; the share by which memory grew at most, and how long it took. What a
/// fork copies belongs to no process's resident memory alone: the server's own account of it counts.
fn watch(server: &Server) -> Result<(f64, Duration)> {
    let mut client = server.client()?;
    let resident = || procfs::resident_bytes_counted(server.pid());
    let before = resident()?;
    let begin = Instant::now();
    order(&mut client, &["BGSAVE"])?;
    let mut most = before;
    loop {
        std::thread::sleep(LOOK);
        most = most.max(resident()?);
        if number(&mut client, "persistence", "rdb_bgsave_in_progress")? == 0 {
            break;
        }
        if begin.elapsed() > PATIENCE {
            bail!("{} did not end its snapshot in {PATIENCE:?}", server.name);
        }
    }
    let time = begin.elapsed();
    let status = info(&mut client, "persistence", "rdb_last_bgsave_status")?;
    if status != "ok" {
        bail!("{}'s snapshot ended with {status}", server.name);
    }
    let copied = number(&mut client, "persistence", "rdb_last_cow_size")?;
    Ok(((most - before + copied) as f64 / before as f64, time))
}

fn report(outcomes: &[Outcome], keys: u64, rounds: usize) -> Report {
    let headers = "server | p50, ms | p99, ms | p99.9, ms | longest, ms | p99 × | p99.9 × | memory + % | \
         seconds | ";
    let mut table = Table::new(1, headers);
    for outcome in outcomes {
        let mut cells = outcome.cells();
        if outcome.server == RUFOUS {
            let met = LATENCY.met(outcome.p99_moved.median)
                && LATENCY.met(outcome.p999_moved.median)
                && MEMORY.met(outcome.growth_percent.median);
            cells.push(if met { "met" } else { "not met" }.into());
        }
        table.row(cells);
    }
    let mut targets = vec!["target".to_owned()];
    targets.resize(5, String::new());
    targets.extend([LATENCY.show(), LATENCY.show(), MEMORY.show()]);
    table.row(targets);
    let rate = LANES * 1_000 / INTERVAL.as_millis().max(1) as u32;
    Report {
        slug: "snapshot",
        part_of: Some(PAGE),
        title: "A snapshot under load".into(),
        command: command("snapshot"),
        method: vec![
            format!(
                "{keys} keys of 8 B with values of 64 B. {LANES} connections send {rate} requests per \
                 second on a fixed schedule, four GETs for each SET, keys drawn uniformly; a stall is \
                 charged for every slot of the schedule that it blocked, and time during which the \
                 load generator did not get its processor is subtracted. First without a snapshot, \
                 then from BGSAVE until it is done; {rounds} times, medians shown.",
            ),
            "Server and forked child share one processor, as Rufous's snapshot does with its \
             worker. Memory is the most that was resident during the snapshot, beyond what was \
             before; for the peers also the pages copied since the fork, by their own account \
             (rdb_last_cow_size)."
                .into(),
        ],
        table,
        chart: None,
        notes: Vec::new(),
        data: json!(outcomes),
    }
}
