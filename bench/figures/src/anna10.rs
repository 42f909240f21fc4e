//! Anna's Figure 10 [Anna §VIII-D]: what each consistency level costs beside eventual consistency, over
//! TCP and in process; and what causal cuts cost.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;
use rufous_base::rng::Rng;
use rufous_kernel::replicate::level::Level;
use serde::Serialize;

use super::anna10_pages;
use super::code_lines::{self, Counted};
use super::drive;
use super::options::Common;
use super::requests::Popularity;
use super::rmw::ReadModifyWrite;
use super::rufous;
use super::served::{Sample, Service};
use super::sessions::{self, Habit};
use super::sixes::{Sixes, Way};
use rufous_bench::client::Reply;
use rufous_bench::loadgen::source::Source;
use rufous_bench::options::RufousOptions;
use rufous_bench::procfs::Machine;
use rufous_bench::progress::Progress;
use rufous_bench::servers::ServerSpec;

/// Requests drawn beforehand, run again and again.
const REQUESTS: usize = 1 << 20;
/// Of the levels; cuts are tried under high contention, too.
pub(crate) const SKEW: f64 = 0.5;
pub(crate) const CUT_SKEWS: [f64; 2] = [4.0, SKEW];
/// Requests that a client has under way where cuts are tried.
pub(crate) const CUT_PIPELINE: usize = 16;
pub(crate) const WORKERS: usize = 2;

/// A level, and how its clients do six operations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contest {
    pub name: &'static str,
    pub level: &'static str,
    pub cut: bool,
    pub way: Way,
}

const fn level(name: &'static str) -> Contest {
    Contest {
        name,
        level: name,
        cut: false,
        way: Way::Single,
    }
}

const fn transactions(name: &'static str, level: &'static str, way: Way) -> Contest {
    Contest {
        name,
        level,
        cut: false,
        way,
    }
}

pub(crate) const EVENTUAL: &str = "eventual";
pub(crate) const CONTESTS: [Contest; 12] = [
    level(EVENTUAL),
    level("causal"),
    transactions(
        "read-uncommitted",
        "read-uncommitted",
        Way::Begun("read-uncommitted"),
    ),
    transactions("read-committed", "read-committed", Way::Buffered),
    transactions("item-cut", "item-cut", Way::Cached),
    level("monotonic-reads"),
    level("monotonic-writes"),
    level("writes-follow-reads"),
    level("read-your-writes"),
    level("pram"),
    transactions(
        "read-committed, BEGIN",
        "read-committed",
        Way::Begun("read-committed"),
    ),
    transactions("item-cut, BEGIN", "item-cut", Way::Begun("item-cut")),
];

pub(crate) const CUTS: [Contest; 2] = [
    level(EVENTUAL),
    Contest {
        name: "eventual, CUT",
        cut: true,
        ..level(EVENTUAL)
    },
];

/// Every level beside eventual consistency.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    pub common: Common,
    /// Keys, with values of 1 KiB [default: 100000, quick 5000]
    #[arg(long)]
    pub keys: Option<u64>,
    /// Windows per level [default: 9, quick 2]
    #[arg(long)]
    pub windows: Option<usize>,
    /// Length of a window in ms [default: 300, quick 150]
    #[arg(long)]
    pub window_ms: Option<u64>,
    #[arg(long, default_value_t = 64)]
    pub clients: usize,
    #[command(flatten)]
    pub rufous: RufousOptions,
}

impl Options {
    pub(crate) fn keys(&self) -> u64 {
        self.common.pick(self.keys, 100_000, 5_000).max(2)
    }

    pub(crate) fn windows(&self) -> usize {
        self.common.pick(self.windows, 9, 2).max(1)
    }

    pub(crate) fn window(&self) -> Duration {
        Duration::from_millis(self.common.pick(self.window_ms, 300, 150))
    }

    pub(crate) fn clients(&self) -> usize {
        self.clients.max(1)
    }
}

/// A level under one mix.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub name: &'static str,
    pub skew: f64,
    pub round_trips: usize,
    pub samples: Vec<Sample>,
    /// Of the epochs of all windows, on average.
    pub stale_us: f64,
}

/// A level in process.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct InProcess {
    pub name: String,
    /// Million operations per second, of each window, and by CPU.
    pub rates: Vec<f64>,
    pub cpu_rates: Vec<f64>,
}

/// All that was measured.
pub(crate) struct Measured {
    pub version: String,
    pub levels: Vec<Row>,
    pub in_process: Vec<InProcess>,
    pub cuts: Vec<Row>,
    /// What this server does not take, and what it says.
    pub refused: Vec<(&'static str, String)>,
    pub code: (Vec<Counted>, Vec<Counted>),
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let machine = Machine::read();
    if machine.cores < WORKERS {
        bail!(
            "it takes {WORKERS} processors, and there is {}",
            machine.cores
        );
    }
    let code = code_lines::count()?;
    let progress = Progress::new("anna10", (CONTESTS.len() + 4) as u64);
    let in_process = in_process(options, &progress)?;
    progress.advance(1);
    let spec = options.rufous.spec()?.with_workers(WORKERS);
    let spec = spec.with(&["--pin", "no"]);
    let mut refused = Vec::new();
    let contests = accepted(&spec, &CONTESTS, &mut refused)?;
    let mut services = services(options, &spec, &contests, &progress)?;
    let version = services[0].version()?;
    let numbers = numbers(options, SKEW);
    let client = |contest: &Contest| -> Box<dyn Source> {
        Box::new(Sixes::new(&numbers, contest.way, options.clients()))
    };
    let mix = (&contests[..], SKEW);
    let levels = interleave(options, &mut services, mix, &client, &progress)?;
    progress.advance(1);
    drop(services);
    let mut cuts = Vec::new();
    let contests = accepted(&spec, &CUTS, &mut refused)?;
    let mut services = self::services(options, &spec, &contests, &progress)?;
    for skew in CUT_SKEWS {
        let numbers = self::numbers(options, skew);
        let route = services[0].route().clone();
        let client = |_: &Contest| -> Box<dyn Source> {
            let clients = options.clients();
            Box::new(ReadModifyWrite::new(
                &numbers,
                CUT_PIPELINE,
                &route,
                clients,
            ))
        };
        let mix = (&contests[..], skew);
        cuts.extend(interleave(options, &mut services, mix, &client, &progress)?);
        progress.advance(1);
    }
    drop((progress, services));
    let measured = Measured {
        version,
        levels,
        in_process,
        cuts,
        refused,
        code,
    };
    anna10_pages::show(options, &machine, &measured)
}

fn numbers(options: &Options, skew: f64) -> Arc<[u32]> {
    let popularity = Popularity::new(options.keys(), skew);
    let numbers = popularity.numbers(REQUESTS, &mut Rng::new(skew.to_bits()));
    numbers.into()
}

/// The command that makes the keyspace of all keys, or of a prefix.
fn create(contest: &Contest, name: &'static str, prefix: &'static str) -> Vec<&'static str> {
    let cut = if contest.cut { "yes" } else { "no" };
    vec![
        "KEYSPACE",
        "CREATE",
        name,
        "PREFIX",
        prefix,
        "REGIME",
        "lattice",
        "LEVEL",
        contest.level,
        "THREADS",
        "all",
        "CUT",
        cut,
    ]
}

/// Those that this server takes; the first it has to.
fn accepted(
    spec: &ServerSpec,
    contests: &[Contest],
    refused: &mut Vec<(&'static str, String)>,
) -> Result<Vec<Contest>> {
    let probe = Service::start("probe", spec, &[], 1)?;
    let mut client = probe.servers[0].client()?;
    let mut accepted = Vec::new();
    for contest in contests {
        let mut refusal = None;
        let mut ask = |words: &[&str]| -> Result<bool> {
            let reply = client.call(words)?;
            if let Reply::Error(text) = reply {
                refusal.get_or_insert(text);
                return Ok(false);
            }
            Ok(true)
        };
        if ask(&create(contest, "probe", "probe:"))? {
            if let Way::Begun(level) = contest.way
                && ask(&["BEGIN", level])?
            {
                ask(&["COMMIT"])?;
            }
            ask(&["KEYSPACE", "DROP", "probe"])?;
        }
        match refusal {
            None => accepted.push(*contest),
            Some(text) => refused.push((contest.name, text)),
        }
    }
    let first = contests.first().map(|contest| contest.name);
    ensure!(
        accepted.first().map(|contest| contest.name) == first,
        "{refused:?}"
    );
    Ok(accepted)
}

/// A server for each level, filled.
fn services(
    options: &Options,
    spec: &ServerSpec,
    contests: &[Contest],
    progress: &Progress,
) -> Result<Vec<Service>> {
    let mut services = Vec::new();
    for contest in contests {
        progress.doing(&format!("filling {}", contest.name));
        let create = create(contest, "all", "");
        let mut service = Service::start(contest.name, spec, &[&create], options.clients())?;
        service.fill(options.keys())?;
        services.push(service);
        if contests.len() > CUTS.len() {
            progress.advance(1);
        }
    }
    Ok(services)
}

/// Windows in turn, after a short one each that is not counted.
fn interleave(
    options: &Options,
    services: &mut [Service],
    (contests, skew): (&[Contest], f64),
    client: &dyn Fn(&Contest) -> Box<dyn Source>,
    progress: &Progress,
) -> Result<Vec<Row>> {
    let mut sources: Vec<_> = contests.iter().map(client).collect();
    let row = |contest: &Contest| Row {
        name: contest.name,
        skew,
        round_trips: contest.way.round_trips(),
        samples: Vec::new(),
        stale_us: 0.0,
    };
    let mut rows: Vec<Row> = contests.iter().map(row).collect();
    let mut before = Vec::new();
    for round in 0..=options.windows() {
        for (at, service) in services.iter_mut().enumerate() {
            progress.doing(&format!("zipf {skew}: {}", service.name));
            if round == 0 {
                service.window(&mut *sources[at], options.window() / 2)?;
                before.push(staleness(service)?);
                continue;
            }
            let sample = service.window(&mut *sources[at], options.window())?;
            rows[at].samples.push(sample);
        }
    }
    for ((row, service), (sum, epochs)) in rows.iter_mut().zip(services).zip(before) {
        let (all, of) = staleness(service)?;
        row.stale_us = (all - sum) / (of - epochs).max(1.0);
        progress.say(&anna10_pages::line(row));
    }
    Ok(rows)
}

/// How far epochs were behind, all together in µs, and how many there were.
fn staleness(service: &Service) -> Result<(f64, f64)> {
    let ask = |field| service.info("keyspaces", field).context("staleness");
    let epochs = ask("replica_stale_epochs")?;
    Ok((ask("replica_stale_avg_us")? * epochs, epochs))
}

fn parse(level: &str) -> Result<Level> {
    level.parse().map_err(|error| anyhow!("{error}"))
}

/// Levels in process: every one but causal, whose concurrent values are a server's business.
fn in_process(options: &Options, progress: &Progress) -> Result<Vec<InProcess>> {
    let keys = options.keys();
    let mut rng = Rng::new(SKEW.to_bits());
    let requests = Popularity::new(keys, SKEW).requests_each(WORKERS, REQUESTS / 4, &mut rng);
    let mut all = Vec::new();
    let has_row = |of: &&Contest| of.name == of.level && of.name != "causal";
    for contest in CONTESTS.iter().filter(has_row) {
        let name = contest.name.to_owned();
        progress.doing(&format!("filling {name} in process"));
        let habit = Habit {
            level: parse(contest.level)?,
            way: contest.way,
        };
        let two = sessions::contestant(&name, habit, keys, WORKERS)?;
        let row = InProcess {
            name,
            rates: Vec::new(),
            cpu_rates: Vec::new(),
        };
        all.push((two, row));
    }
    for round in 0..=options.windows() {
        for (two, row) in &mut all {
            progress.doing(&format!("in process: {}", row.name));
            let window = two.window(&requests, options.window() / 2)?;
            if round > 0 {
                let rate = |clock: fn(&drive::Ran) -> f64| {
                    window.rate(clock, None) * sessions::OPERATIONS_PER_KEY
                };
                row.rates.push(rate(|ran| ran.wall_ns));
                row.cpu_rates.push(rate(|ran| ran.cpu_ns));
            }
        }
    }
    let mut rows = Vec::new();
    for (mut two, row) in all {
        rufous::converge(&mut two.workers(), keys)?;
        rows.push(row);
    }
    Ok(rows)
}
