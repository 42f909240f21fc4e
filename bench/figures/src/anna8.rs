//! Anna's Figure 8 [Anna §VIII-C1]: over TCP, under high and low contention, beside one Redis and
//! beside a Redis Cluster with an instance for each processor.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use rufous_base::rng::Rng;
use serde::Serialize;

use super::anna8_pages;
use super::constants::Constants;
use super::drive::{Reach, Split};
use super::options::Common;
use super::requests::Popularity;
use super::rmw::ReadModifyWrite;
use super::rufous;
use super::served::{self, Sample, Service};
use rufous_bench::options::{RufousOptions, peer};
use rufous_bench::procfs::Machine;
use rufous_bench::progress::Progress;
use rufous_bench::servers::on_path;
use rufous_bench::stats::Summary;

/// Requests drawn beforehand, run again and again.
const REQUESTS: usize = 1 << 20;
pub(crate) const SKEWS: [f64; 2] = [4.0, 0.5];
/// Requests that a client has under way: as in the paper, and as pipelining clients do.
pub(crate) const PIPELINES: [usize; 2] = [1, 16];
/// Workers, and instances of the cluster: two processors are what it is written for.
pub(crate) const NODES: usize = 2;

pub(crate) const REDIS: &str = "Redis";
pub(crate) const CLUSTER: &str = "Redis Cluster, 2 instances";
pub(crate) const ONE_REPLICA: &str = "Rufous, 1 replica";
pub(crate) const FULL: &str = "Rufous, full replication";

/// Rufous over TCP beside Redis and Redis Cluster.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    pub common: Common,
    /// Keys of 25 B, with values of 1 KiB [default: 1000000, quick 20000]
    #[arg(long)]
    pub keys: Option<u64>,
    /// Windows per store and mix [default: 9, quick 2]
    #[arg(long)]
    pub windows: Option<usize>,
    /// Length of a window in ms [default: 400, quick 200]
    #[arg(long)]
    pub window_ms: Option<u64>,
    /// Clients; those of the cluster have a connection to each instance
    #[arg(long, default_value_t = 64)]
    pub clients: usize,
    #[command(flatten)]
    pub rufous: RufousOptions,
}

impl Options {
    pub(crate) fn keys(&self) -> u64 {
        self.common.pick(self.keys, 1_000_000, 20_000).max(1)
    }

    pub(crate) fn windows(&self) -> usize {
        self.common.pick(self.windows, 9, 2).max(1)
    }

    pub(crate) fn window(&self) -> Duration {
        Duration::from_millis(self.common.pick(self.window_ms, 400, 200))
    }
}

/// A store under one mix.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub store: String,
    pub skew: f64,
    pub pipeline: usize,
    pub samples: Vec<Sample>,
    /// Keys sent to other replicas, and taken over from them, for each operation.
    pub sent: f64,
    pub merged: f64,
}

impl Row {
    pub(crate) fn median(&self, field: impl Fn(&Sample) -> f64) -> f64 {
        self.summary(field).median
    }

    pub(crate) fn summary(&self, field: impl Fn(&Sample) -> f64) -> Summary {
        served::summary(&self.samples, field)
    }

    /// Window by window.
    pub(crate) fn ratio_to(&self, other: &Self, field: impl Fn(&Sample) -> f64) -> Summary {
        served::ratio(&self.samples, &other.samples, field)
    }
}

/// What replicas cost one another in process, in ns for each key.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Gossip {
    pub send: f64,
    pub merge: f64,
    /// Keys in one message.
    pub batch: f64,
}

/// All that was measured.
pub(crate) struct Measured {
    pub rows: Vec<Row>,
    pub versions: Vec<(String, String)>,
    pub constants: Constants,
    /// Under each of the skews.
    pub gossip: Vec<Gossip>,
}

impl Measured {
    pub(crate) fn row(&self, store: &str, skew: f64, pipeline: usize) -> Option<&Row> {
        let is = |row: &&Row| row.store == store && row.skew == skew && row.pipeline == pipeline;
        self.rows.iter().find(is)
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let machine = Machine::read();
    if machine.cores < NODES {
        bail!(
            "it takes {NODES} processors, and there is {}",
            machine.cores
        );
    }
    let mixes = SKEWS.len() * PIPELINES.len();
    let progress = Progress::new("anna8", (mixes + 5) as u64);
    progress.doing("what processors and replicas cost one another");
    let constants = Constants::measure()?;
    let gossip: Result<Vec<_>> = SKEWS.iter().map(|&skew| gossip(options, skew)).collect();
    progress.advance(1);
    let mut services = services(options, &progress)?;
    let mut versions = Vec::new();
    for (name, at) in [("redis", 0), ("rufous", services.len() - 1)] {
        versions.push((name.to_owned(), services[at].version()?));
    }
    let mut rows = Vec::new();
    for skew in SKEWS {
        let popularity = Popularity::new(options.keys(), skew);
        let numbers = popularity.numbers(REQUESTS, &mut Rng::new(skew.to_bits()));
        for pipeline in PIPELINES {
            let mix = (skew, pipeline, Arc::from(&numbers[..]));
            rows.extend(interleave(options, &mut services, &mix, &progress)?);
            progress.advance(1);
        }
    }
    drop((progress, services));
    let measured = Measured {
        rows,
        versions,
        constants,
        gossip: gossip?,
    };
    anna8_pages::show(options, &machine, &measured)
}

/// Peers first, full replication last; each filled.
fn services(options: &Options, progress: &Progress) -> Result<Vec<Service>> {
    if on_path("redis-server").is_none() {
        bail!("redis-server is missing (Debian: apt-get install redis-server)");
    }
    let (redis, clients) = (peer("redis", "redis-server", ""), options.clients.max(1));
    let rufous = options.rufous.spec()?.with_workers(NODES);
    let rufous = rufous.with(&["--pin", "no"]);
    let create = |threads| {
        let words = ["KEYSPACE", "CREATE", "all", "PREFIX", "", "REGIME"];
        let words = words.into_iter().chain(["lattice", "THREADS", threads]);
        words.collect::<Vec<_>>()
    };
    let mut full = Service::start(FULL, &rufous, &[&create("all")], clients)?;
    full.alike = Some(NODES);
    let mut services = vec![
        Service::start(REDIS, &redis, &[], clients)?,
        Service::cluster(CLUSTER, &redis, NODES, clients)?,
        Service::start(ONE_REPLICA, &rufous, &[&create("1")], clients)?,
        full,
    ];
    for service in &mut services {
        progress.doing(&format!("filling {}", service.name));
        service.fill(options.keys())?;
        progress.advance(1);
    }
    Ok(services)
}

/// Windows in turn, after a short one each that is not counted.
fn interleave(
    options: &Options,
    services: &mut [Service],
    (skew, pipeline, numbers): &(f64, usize, Arc<[u32]>),
    progress: &Progress,
) -> Result<Vec<Row>> {
    let source = |service: &Service| {
        ReadModifyWrite::new(numbers, *pipeline, service.route(), options.clients.max(1))
    };
    let mut sources: Vec<_> = services.iter().map(source).collect();
    let mut rows: Vec<Row> = services.iter().map(|s| row(s, *skew, *pipeline)).collect();
    for round in 0..=options.windows() {
        for (at, service) in services.iter_mut().enumerate() {
            let name = &service.name;
            progress.doing(&format!("zipf {skew}, {pipeline} at a time: {name}"));
            let (before, time) = match round {
                0 => (None, options.window() / 2),
                _ => (Some(told(service)?), options.window()),
            };
            let sample = service.window(&mut sources[at], time)?;
            if let Some((sent, merged)) = before {
                let after = told(service)?;
                rows[at].sent += after.0 - sent;
                rows[at].merged += after.1 - merged;
                rows[at].samples.push(sample);
            }
        }
    }
    for row in &mut rows {
        let operations: f64 = row.samples.iter().map(|sample| sample.operations).sum();
        row.sent /= operations;
        row.merged /= operations;
        progress.say(&format!(
            "zipf {skew}, {pipeline} at a time, {}: {:.0} k/s, {:.2} CPU-µs each, {:.2} of one \
             thread, clients {:.2}",
            row.store,
            row.median(|s| s.kops),
            row.median(|s| s.cpu_us),
            row.median(|s| s.bound_us),
            row.median(|s| s.load_us),
        ));
    }
    Ok(rows)
}

fn row(service: &Service, skew: f64, pipeline: usize) -> Row {
    Row {
        store: service.name.clone(),
        skew,
        pipeline,
        samples: Vec::new(),
        sent: 0.0,
        merged: 0.0,
    }
}

/// Keys that replicas have sent, and merged, so far.
fn told(service: &Service) -> Result<(f64, f64)> {
    if service.name != FULL {
        return Ok((0.0, 0.0));
    }
    let ask = |field| service.info("keyspaces", field);
    Ok((ask("replica_sent_keys")?, ask("replica_merged")?))
}

/// What telling one another costs two workers in process, with values of the same size.
fn gossip(options: &Options, skew: f64) -> Result<Gossip> {
    let keys = options.keys().min(200_000);
    let mut rng = Rng::new(skew.to_bits());
    let requests = Popularity::new(keys, skew).requests_each(NODES, REQUESTS / 4, &mut rng);
    let workers = rufous::workers(keys, NODES, 0)?;
    let mut two = rufous::contestant(FULL, Reach::All, workers);
    two.window(&requests, Duration::from_millis(150))?;
    let mut split = Split::default();
    for _ in 0..3 {
        let window = two.window(&requests, Duration::from_millis(400))?;
        split = window
            .threads
            .iter()
            .fold(split, |sum, ran| sum.plus(&ran.split));
    }
    Ok(Gossip {
        send: split.multicast_ns / split.sent_keys,
        merge: split.merge_ns / split.merged_keys,
        batch: split.sent_keys / split.sent_messages,
    })
}
