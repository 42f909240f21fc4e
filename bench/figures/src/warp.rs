//! Operations in transactions of several keys beside the same operations alone, by workload and by size [Warp §5]:
//! operations per second, and CPU time of the nodes for each operation.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::json;

use super::callers;
use super::options::{Common, rufous};
use super::warp_operations::{Drawn, Operations, VALUE_BYTES, Way, Workload};
use rufous_bench::loadgen::load::{Load, Stop};
use rufous_bench::nodes::{Nodes, Program};
use rufous_bench::procfs::{self, Machine};
use rufous_bench::progress::Progress;
use rufous_bench::report::Report;
use rufous_bench::sections;
use rufous_bench::stats::{Summary, Target};
use rufous_bench::table::Table;

/// Clients at each node.
const CLIENTS: usize = 8;
/// What transactions keep of the rate of the store below them [Warp §5].
const TARGET: Target = Target::AtLeast(0.8);

/// Of YCSB: A reads and writes, B reads most of the time, C reads, D reads the newest and makes new ones, F reads, and changes
/// records by increments. Others are named by their reads in percent.
const fn workload(name: &'static str, reads: u64, writes: u64, drawn: Drawn) -> Workload {
    Workload {
        name,
        reads,
        writes,
        drawn,
    }
}

/// What is compared in one figure of the paper: workloads, each with operations of a transaction.
pub(crate) struct Figure {
    slug: &'static str,
    title: &'static str,
    command: &'static str,
    rows: &'static [(Workload, usize)],
    has_target: bool,
}

pub(crate) const NINE: Figure = Figure {
    slug: "warp-9",
    title: "Operations in transactions of eight, by workload",
    command: "cargo xtask figures warp9",
    rows: &[
        (workload("A", 50, 50, Drawn::Popular), 8),
        (workload("B", 95, 5, Drawn::Popular), 8),
        (workload("C", 100, 0, Drawn::Popular), 8),
        (workload("D", 95, 5, Drawn::Latest), 8),
        (workload("F", 50, 0, Drawn::Popular), 8),
    ],
    has_target: true,
};

pub(crate) const TWELVE: Figure = Figure {
    slug: "warp-12",
    title: "Operations in transactions of eight, by the part of reads",
    command: "cargo xtask figures warp12",
    rows: &[
        (workload("0 % reads", 0, 100, Drawn::Evenly), 8),
        (workload("25 % reads", 25, 75, Drawn::Evenly), 8),
        (workload("50 % reads", 50, 50, Drawn::Evenly), 8),
        (workload("75 % reads", 75, 25, Drawn::Evenly), 8),
        (workload("100 % reads", 100, 0, Drawn::Evenly), 8),
    ],
    has_target: false,
};

pub(crate) const THIRTEEN: Figure = Figure {
    slug: "warp-13",
    title: "Writes in transactions of 1 to 64",
    command: "cargo xtask figures warp13",
    rows: &[
        (workload("writes", 0, 100, Drawn::Evenly), 1),
        (workload("writes", 0, 100, Drawn::Evenly), 2),
        (workload("writes", 0, 100, Drawn::Evenly), 4),
        (workload("writes", 0, 100, Drawn::Evenly), 16),
        (workload("writes", 0, 100, Drawn::Evenly), 64),
    ],
    has_target: false,
};

/// Clusters that are measured.
const SETTINGS: [Setting; 2] = [
    Setting {
        name: "one node, two workers",
        nodes: 1,
        workers: 2,
        copies: 1,
    },
    Setting {
        name: "three nodes, two copies",
        nodes: 3,
        workers: 1,
        copies: 2,
    },
];

#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    pub common: Common,
    /// Windows of each row [default: 7, quick 2]
    #[arg(long)]
    pub windows: Option<usize>,
    /// Keys [default: 100000, quick 1000]
    #[arg(long)]
    pub keys: Option<u64>,
    #[command(flatten)]
    pub program: Program,
}

#[derive(Clone, Copy, Debug)]
struct Setting {
    name: &'static str,
    nodes: usize,
    workers: usize,
    copies: usize,
}

/// What was measured in one window.
#[derive(Clone, Copy, Debug, serde::Serialize)]
struct Sample {
    /// Operations per second.
    rate: f64,
    /// CPU-microseconds of all nodes for an operation.
    cpu_us: f64,
}

/// The same operations one by one, in pipelines and in transactions, in windows that take turns.
#[derive(Debug, serde::Serialize)]
struct Row {
    setting: &'static str,
    workload: &'static str,
    size: usize,
    one_by_one: Vec<Sample>,
    pipeline: Vec<Sample>,
    transaction: Vec<Sample>,
}

impl Row {
    /// Of the rates of transactions to those of another way.
    fn ratio(&self, to: &[Sample]) -> Summary {
        let pairs = self.transaction.iter().zip(to);
        Summary::of(pairs.map(|(transaction, other)| transaction.rate / other.rate))
    }
}

/// Runs it, prints it, and writes the page where the options say.
pub(crate) fn run(options: &Options, figure: &Figure) -> Result<()> {
    let machine = Machine::read();
    let (mut rows, mut version) = (Vec::new(), String::new());
    for setting in SETTINGS {
        let mut nodes = Nodes::new(options.program.plan(setting.workers, setting.copies)?)?;
        for _ in 0..setting.nodes {
            nodes.start()?;
        }
        nodes.until_whole()?;
        let info = nodes.running()[0].client()?.call(&["INFO", "server"])?;
        version = sections::version(&info.text()?);
        let keys = options.common.pick(options.keys, 100_000, 1_000);
        callers::fill(
            &mut nodes.running()[0].client()?,
            keys,
            &[b'v'; VALUE_BYTES],
        )?;
        let mut bench = Bench {
            options,
            keys,
            setting,
            load: connect(&nodes)?,
            nodes: &nodes,
        };
        let progress = Progress::new(setting.name, figure.rows.len() as u64);
        for (workload, size) in figure.rows {
            rows.push(bench.row(*workload, *size)?);
            progress.advance(1);
        }
    }
    let report = report(figure, &rows);
    let common = &options.common;
    common.publish(&machine, rufous(version), &[report], &[])
}

fn connect(nodes: &Nodes) -> Result<Load> {
    let mut streams = Vec::new();
    for node in nodes.running() {
        for _ in 0..CLIENTS {
            let stream = std::net::TcpStream::connect(node.plain);
            streams.push(stream.with_context(|| format!("connecting to {}", node.plain))?);
        }
    }
    Load::adopt(streams)
}

/// A cluster under clients.
struct Bench<'o> {
    options: &'o Options,
    keys: u64,
    setting: Setting,
    load: Load,
    nodes: &'o Nodes,
}

impl Bench<'_> {
    fn row(&mut self, workload: Workload, size: usize) -> Result<Row> {
        let windows = self.options.common.pick(self.options.windows, 7, 2);
        let mut operations = Operations::new(workload, self.keys);
        let ways = [Way::OneByOne, Way::Pipeline(size), Way::Transaction(size)];
        let mut samples = [(); 3].map(|()| Vec::new());
        // The first of each is not counted.
        for round in 0..=windows {
            for (way, samples) in ways.into_iter().zip(&mut samples) {
                operations.send(way, round as u64);
                let sample = self.window(&mut operations)?;
                if round > 0 {
                    samples.push(sample);
                }
            }
        }
        self.keys = operations.keys;
        let [one_by_one, pipeline, transaction] = samples;
        Ok(Row {
            setting: self.setting.name,
            workload: workload.name,
            size,
            one_by_one,
            pipeline,
            transaction,
        })
    }

    fn window(&mut self, operations: &mut Operations) -> Result<Sample> {
        let time = Duration::from_millis(self.options.common.pick(None, 700, 150));
        let (before, began) = (self.cpu_s()?, std::time::Instant::now());
        let window = self.load.run(operations, Stop::After(time))?;
        let (took, cpu_s) = (began.elapsed().as_secs_f64(), self.cpu_s()? - before);
        let done = window.operations() as f64;
        ensure!(done > 0.0, "nothing was answered");
        Ok(Sample {
            rate: done / took,
            cpu_us: cpu_s * 1e6 / done,
        })
    }

    fn cpu_s(&self) -> Result<f64> {
        let of = |pid| procfs::cpu_time(pid).context("a node has ended");
        let mut all = 0.0;
        for node in self.nodes.running() {
            all += of(node.process())?.as_secs_f64();
        }
        Ok(all)
    }
}

fn method() -> Vec<String> {
    vec![format!(
        "Clusters on this machine, with logs that are synced every second: one node with two workers, and three nodes with one worker each and two copies of each slot. {CLIENTS} \
             clients at the plain endpoint of each node send the same operations in three ways, in windows that take turns: one by one, each after the reply to the one before, as YCSB's \
             clients do and as the paper compares; so many in one write, as a pipeline; and so many between MULTI and EXEC. Values have {VALUE_BYTES} bytes. CPU time of all nodes by the \
             kernel's account; the clients have the rest of the machine. Medians, and quartiles of the ratios of neighbouring windows."
    )]
}

const HEADERS: &str = "cluster | workload | size | 1000 one by one/s | in pipelines | in transactions | transactions to one by one | to pipelines | CPU-µs one by one | in pipelines | in transactions | target";

fn table(rows: &[Row], has_target: bool) -> Table {
    let mut table = Table::new(3, HEADERS);
    for row in rows {
        let of =
            |samples: &[Sample], of: fn(&Sample) -> f64| Summary::of(samples.iter().map(of)).median;
        let rate = |samples| format!("{:.1}", of(samples, |sample| sample.rate) / 1000.0);
        let cpu_us = |samples| format!("{:.1}", of(samples, |sample| sample.cpu_us));
        let ratio = row.ratio(&row.one_by_one);
        let verdict = format!("{} {}", TARGET.show(), TARGET.verdict(ratio.median));
        table.row(vec![
            row.setting.to_owned(),
            row.workload.to_owned(),
            row.size.to_string(),
            rate(&row.one_by_one),
            rate(&row.pipeline),
            rate(&row.transaction),
            ratio.show(),
            row.ratio(&row.pipeline).show(),
            cpu_us(&row.one_by_one),
            cpu_us(&row.pipeline),
            cpu_us(&row.transaction),
            if has_target { verdict } else { String::new() },
        ]);
    }
    table
}

fn report(figure: &Figure, rows: &[Row]) -> Report {
    Report {
        slug: figure.slug,
        part_of: None,
        title: figure.title.into(),
        command: figure.command.into(),
        method: method(),
        table: table(rows, figure.has_target),
        chart: None,
        notes: vec![
            "YCSB's workload A reads and writes by halves, B reads 95 %, C reads alone, D reads the newest records in 95 % and makes new ones. F changes a record by INCR in half of its operations: within MULTI no client \
             reads before it writes."
                .into(),
            "Over three nodes a transaction waits for copies and log of each worker with slots of it, twice (docs/adr/0058); operations alone wait once, and only writes do. Transactions that only read wait for neither, and are asked for twice (docs/adr/0063)."
                .into(),
        ],
        data: json!(rows),
    }
}
