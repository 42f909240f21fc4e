//! One worker, two workers, two nodes (Anna 2018, Figure 6): updates of a lattice keyspace over TCP, with a
//! replica at each worker, in CPU time for each; and how more nodes would go on.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use rufous_base::rng::Rng;
use serde_json::json;

use super::lines::{Line, LineChart};
use super::options::{Common, rufous};
use super::requests::Popularity;
use rufous_bench::client::encode;
use rufous_bench::loadgen::conn::{Batch, Expect};
use rufous_bench::loadgen::load::{Load, Stop};
use rufous_bench::loadgen::reply::Check;
use rufous_bench::loadgen::source::Source;
use rufous_bench::nodes::{Nodes, Program};
use rufous_bench::procfs::{self, Machine};
use rufous_bench::progress::Progress;
use rufous_bench::report::Report;
use rufous_bench::sections;
use rufous_bench::stats::Summary;
use rufous_bench::table::Table;

/// What a cluster is, and its nodes and workers.
const SCALES: [(&str, usize, usize); 3] = [
    ("1 node of 1 worker", 1, 1),
    ("1 node of 2 workers", 1, 2),
    ("2 nodes of 1 worker", 2, 1),
];
const SKEWS: [f64; 2] = [4.0, 0.5];
const KEYS: u64 = 10_000;
const VALUE_BYTES: usize = 1024;
const CONNECTIONS: usize = 16;
const PIPELINE: usize = 16;
/// What the last epoch of a window changed arrives until then, and belongs to the window.
const SETTLE: Duration = Duration::from_millis(250);
const PATIENCE: Duration = Duration::from_secs(60);
/// Replicas of a key, where there are more nodes.
const REPLICAS: f64 = 3.0;
/// How far the model goes.
const MOST_NODES: u32 = 64;
const TABLE: &str =
    "[[keyspace]]\nname = \"scaled\"\nprefix = \"u:\"\nregime = \"lattice\"\nthreads = \"all\"\n";

#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    pub common: Common,
    /// Windows of each row [default: 9, quick 2]
    #[arg(long)]
    pub windows: Option<usize>,
    #[command(flatten)]
    pub program: Program,
}

/// Writes keys of some popularity.
struct Updates<'a> {
    numbers: &'a [u32],
    next: usize,
}

impl Source for Updates<'_> {
    fn fill(&mut self, _conn: usize, batch: &mut Batch) {
        for _ in 0..PIPELINE {
            let key = format!("u:{:05}", self.numbers[self.next]);
            self.next = (self.next + 1) % self.numbers.len();
            let words: [&[u8]; 3] = [b"SET", key.as_bytes(), &[b'v'; VALUE_BYTES]];
            encode(&mut batch.out, &words);
            batch.expects.push(Expect::completing(Check::Simple, 0));
        }
    }
}

#[derive(Clone, Copy, Debug, serde::Serialize)]
struct Sample {
    kops: f64,
    /// Of all nodes, for each update.
    cpu_us: f64,
}

struct Row {
    skew: f64,
    /// For each of the scales.
    samples: [Vec<Sample>; SCALES.len()],
}

/// Runs it, prints it, and writes the page where the options say.
pub(crate) fn run(options: &Options) -> Result<()> {
    let machine = Machine::read();
    let folder = tempfile::Builder::new().prefix("rufous-anna6-").tempdir()?;
    let config = folder.path().join("rufous.toml");
    std::fs::write(&config, TABLE)?;
    let mut clusters = Vec::new();
    for (_, nodes, workers) in SCALES {
        clusters.push(cluster(&options.program, &config, nodes, workers)?);
    }
    let info = clusters[0].running()[0]
        .client()?
        .call(&["INFO", "server"])?;
    let version = sections::version(&info.text()?);
    let rows = measured(options, &clusters)?;
    let report = report(&rows);
    let charts = [("anna-6.svg", chart(&rows).svg()?)];
    let common = &options.common;
    common.publish(&machine, rufous(version), &[report], &charts)
}

fn cluster(program: &Program, config: &Path, nodes: usize, workers: usize) -> Result<Nodes> {
    let config = config.to_str().context("a path that is text")?;
    let mut all = Nodes::new(program.plan(workers, 1)?.with(&["--config", config]))?;
    for _ in 0..nodes {
        all.start()?;
    }
    all.until_whole()?;
    // All serve lattice keys once they have heard of each other.
    let began = Instant::now();
    for node in all.running() {
        let mut client = node.client()?;
        while client
            .call(&["SET", "u:ready", "1"])?
            .text()
            .ok()
            .as_deref()
            != Some("OK")
        {
            if began.elapsed() > PATIENCE {
                bail!("a node does not serve lattice keys");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    Ok(all)
}

fn measured(options: &Options, clusters: &[Nodes]) -> Result<Vec<Row>> {
    let windows = options.common.pick(options.windows, 9, 2);
    let time = Duration::from_millis(options.common.pick(None, 700, 150));
    let mut loads = Vec::new();
    for nodes in clusters {
        let addrs: Vec<_> = nodes.running().iter().map(|node| node.plain).collect();
        let clients = CONNECTIONS / addrs.len();
        let streams = addrs
            .iter()
            .flat_map(|addr| std::iter::repeat_n(addr, clients));
        let streams: Result<Vec<_>, _> = streams.map(std::net::TcpStream::connect).collect();
        loads.push(Load::adopt(streams?)?);
    }
    let steps = SKEWS.len() * (windows + 1);
    let progress = Progress::new("scales", steps as u64);
    let mut rows = Vec::new();
    for skew in SKEWS {
        let mut rng = Rng::new(6);
        let numbers = Popularity::new(KEYS, skew).numbers(1 << 16, &mut rng);
        let mut samples = [const { Vec::new() }; SCALES.len()];
        // The first of each is not counted.
        for round in 0..=windows {
            for (at, load) in loads.iter_mut().enumerate() {
                let mut source = Updates {
                    numbers: &numbers,
                    next: (round * 7919) % numbers.len(),
                };
                let before = cpu(&clusters[at])?;
                let window = load.run(&mut source, Stop::After(time))?;
                std::thread::sleep(SETTLE);
                let cpu = cpu(&clusters[at])? - before;
                let done = window.operations() as f64;
                ensure!(done > 0.0, "nothing was answered");
                if round > 0 {
                    samples[at].push(Sample {
                        kops: done / window.elapsed.as_secs_f64() / 1e3,
                        cpu_us: cpu * 1e6 / done,
                    });
                }
            }
            progress.advance(1);
        }
        rows.push(Row { skew, samples });
    }
    Ok(rows)
}

/// Seconds of all nodes.
fn cpu(nodes: &Nodes) -> Result<f64> {
    let each = nodes.running().iter().map(|node| {
        let time = procfs::cpu_time(node.process()).context("a node has ended");
        Ok(time?.as_secs_f64())
    });
    each.sum()
}

fn median(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> f64 {
    Summary::of(samples.iter().map(of)).median
}

/// What an update costs where it is taken, and what each further node with a replica adds, in µs.
fn costs(row: &Row) -> (f64, f64) {
    let one = median(&row.samples[0], |sample| sample.cpu_us);
    let two = median(&row.samples[2], |sample| sample.cpu_us);
    (one, (two - one).max(0.0))
}

/// Thousands of updates a second of so many nodes with a processor each, and so many replicas.
fn kops(row: &Row, nodes: f64, replicas: f64) -> f64 {
    let (one, more) = costs(row);
    nodes * 1e3 / (one + (replicas.min(nodes) - 1.0) * more)
}

fn report(rows: &[Row]) -> Report {
    let headers = "popularity | scale | thousand updates/s | CPU-µs of all nodes | against one worker | \
         with a processor for each worker, thousand/s";
    let mut table = Table::new(2, headers);
    let mut notes = Vec::new();
    for row in rows {
        for ((name, nodes, workers), samples) in SCALES.iter().zip(&row.samples) {
            let one = row.samples[0].iter();
            let pairs = samples.iter().zip(one);
            let cpu = Summary::of(samples.iter().map(|sample| sample.cpu_us));
            let threads = (nodes * workers) as f64;
            table.row(vec![
                format!("zipf {}", row.skew),
                (*name).to_owned(),
                Summary::of(samples.iter().map(|sample| sample.kops)).show(),
                cpu.show(),
                Summary::of(pairs.map(|(two, one)| two.cpu_us / one.cpu_us)).show(),
                format!("{:.0}", threads * 1e3 / cpu.median),
            ]);
        }
        let (one, more) = costs(row);
        notes.push(format!(
            "zipf {}: an update costs {one:.2} µs where it is taken, and {more:.2} µs for each further node that has a \
             replica. The model goes on from these: {} nodes with a processor each would take {:.0} thousand updates a second \
             with {REPLICAS} replicas of a key, {:.0} thousand with one at every node.",
            row.skew,
            MOST_NODES,
            kops(row, f64::from(MOST_NODES), REPLICAS),
            kops(row, f64::from(MOST_NODES), f64::from(MOST_NODES)),
        ));
    }
    notes.push(
        "Every node has every lattice key so far: the line with three replicas says what keyspaces with fewer would gain. \
         Where hot keys are written again and again, an epoch sends each once, so the further node's share is that of \
         messages, not of updates; with more nodes each sends its own, which the model counts."
            .into(),
    );
    let data = rows
        .iter()
        .map(|row| json!({ "skew": row.skew, "samples": row.samples }));
    Report {
        slug: "anna-6",
        part_of: None,
        title: "One worker, two workers, two nodes".into(),
        command: "cargo xtask figures anna6".into(),
        method: vec![
            format!(
                "Updates of {KEYS} keys of a lattice keyspace with values of {VALUE_BYTES} bytes, over {CONNECTIONS} connections with \
                 {PIPELINE} at a time, spread over all nodes at their plain endpoints; each worker has a replica of each key, and \
                 they merge each 100 ms. Three clusters run side by side and are asked in turns. CPU time of all \
                 processes of a cluster for each update, what the last epoch of a window still costs included; \
                 median and quartiles. The processors of this machine are shared with the clients, so throughput says less."
            ),
            "![Updates a second by nodes](anna-6.svg)".into(),
        ],
        table,
        chart: None,
        notes,
        data: json!(data.collect::<Vec<_>>()),
    }
}

fn chart(rows: &[Row]) -> LineChart {
    let curve = |row: &Row, replicas: f64| {
        let nodes = (1..=MOST_NODES).map(f64::from);
        nodes.map(|n| (n, kops(row, n, replicas))).collect()
    };
    let lines = rows.iter().flat_map(|row| {
        let measured = [(1.0, kops(row, 1.0, 1.0)), (2.0, kops(row, 2.0, 2.0))];
        [
            Line {
                name: format!("zipf {}, {REPLICAS} replicas", row.skew),
                curve: curve(row, REPLICAS),
                measured: measured.to_vec(),
            },
            Line {
                name: format!("zipf {}, a replica at every node", row.skew),
                curve: curve(row, f64::INFINITY),
                measured: Vec::new(),
            },
        ]
    });
    LineChart {
        title: "Updates by nodes with a processor each: measured to 2, reckoned beyond".into(),
        x_axis: "nodes".into(),
        y_axis: "thousand updates a second".into(),
        lines: lines.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_goes_on_from_what_was_measured() {
        let of = |cpu_us| vec![Sample { kops: 1.0, cpu_us }; 3];
        let row = Row {
            skew: 4.0,
            samples: [of(2.0), of(2.5), of(3.0)],
        };
        assert_eq!(costs(&row), (2.0, 1.0));
        assert_eq!(kops(&row, 1.0, 3.0), 500.0);
        assert_eq!(kops(&row, 2.0, 3.0), 2.0 * 1e3 / 3.0);
        assert_eq!(kops(&row, 8.0, 3.0), 2_000.0);
        assert!(kops(&row, 64.0, 64.0) < 1_000.0);
    }
}
