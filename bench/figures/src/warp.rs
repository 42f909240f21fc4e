//! Operations in transactions of several keys beside the same operations alone, by workload and by size [Warp §5]:
//! operations per second, and CPU time of the nodes for each operation.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use rufous_base::rng::Rng;
use serde_json::json;

use super::callers;
use super::options::{Common, rufous};
use rufous_bench::client::encode;
use rufous_bench::loadgen::conn::{Batch, Expect};
use rufous_bench::loadgen::load::{Load, Stop};
use rufous_bench::loadgen::reply::Check;
use rufous_bench::loadgen::source::Source;
use rufous_bench::loadgen::zipf::{YCSB_THETA, Zipfian};
use rufous_bench::nodes::{Nodes, Program};
use rufous_bench::procfs::{self, Machine};
use rufous_bench::progress::Progress;
use rufous_bench::report::Report;
use rufous_bench::sections;
use rufous_bench::stats::{Summary, Target};
use rufous_bench::table::Table;

/// Clients at each node.
const CLIENTS: usize = 8;
const VALUE_BYTES: usize = 64;
/// What transactions keep of the rate of the store below them [Warp §5].
const TARGET: Target = Target::AtLeast(0.8);

/// Of YCSB: A reads and writes, B reads most of the time, C reads, F reads, and changes records by increments. One is named by
/// its reads in percent.
const fn workload(name: &'static str, reads: u64, writes: u64) -> Workload {
    Workload {
        name,
        reads,
        writes,
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
        (workload("A", 50, 50), 8),
        (workload("B", 95, 5), 8),
        (workload("C", 100, 0), 8),
        (workload("F", 50, 0), 8),
    ],
    has_target: true,
};

pub(crate) const TWELVE: Figure = Figure {
    slug: "warp-12",
    title: "Operations in transactions of two, by the part of reads",
    command: "cargo xtask figures warp12",
    rows: &[
        (workload("0 % reads", 0, 100), 2),
        (workload("25 % reads", 25, 75), 2),
        (workload("50 % reads", 50, 50), 2),
        (workload("75 % reads", 75, 25), 2),
        (workload("100 % reads", 100, 0), 2),
    ],
    has_target: false,
};

pub(crate) const THIRTEEN: Figure = Figure {
    slug: "warp-13",
    title: "Writes in transactions of 1 to 64",
    command: "cargo xtask figures warp13",
    rows: &[
        (workload("writes", 0, 100), 1),
        (workload("writes", 0, 100), 2),
        (workload("writes", 0, 100), 4),
        (workload("writes", 0, 100), 16),
        (workload("writes", 0, 100), 64),
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

/// Parts of operations, in percent; the others are increments, which read, change and write a record.
#[derive(Clone, Copy, Debug)]
struct Workload {
    name: &'static str,
    reads: u64,
    writes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Setting {
    name: &'static str,
    nodes: usize,
    workers: usize,
    copies: usize,
}

/// Operations on keys by popularity, so many at a time: in a transaction, or one behind the other.
#[derive(Clone)]
struct Operations {
    workload: Workload,
    popularity: Zipfian,
    size: usize,
    is_grouped: bool,
    rng: Rng,
}

impl Operations {
    /// Appends one; what its reply must look like.
    fn one(&mut self, out: &mut Vec<u8>) -> Check {
        let number = self.popularity.next(&mut self.rng);
        let drawn = self.rng.below(100);
        let key = format!("k{number:08}");
        if drawn < self.workload.reads {
            encode(out, &[b"GET", key.as_bytes()]);
            Check::Bulk
        } else if drawn < self.workload.reads + self.workload.writes {
            encode(out, &[b"SET", key.as_bytes(), &[b'v'; VALUE_BYTES]]);
            Check::Simple
        } else {
            encode(out, &[b"INCR", format!("n{number:08}").as_bytes()]);
            Check::Integer
        }
    }
}

impl Source for Operations {
    fn fill(&mut self, _conn: usize, batch: &mut Batch) {
        if self.is_grouped {
            encode(&mut batch.out, &[b"MULTI"]);
            batch.expects.push(Expect::part(Check::Simple));
        }
        let mut checks = Vec::new();
        for _ in 0..self.size {
            checks.push(self.one(&mut batch.out));
        }
        if self.is_grouped {
            encode(&mut batch.out, &[b"EXEC"]);
            let queued = checks.iter().map(|_| Expect::part(Check::Simple));
            batch.expects.extend(queued);
            let whole = Check::Array(checks.len() as u32);
            batch.expects.push(Expect::part(whole));
        }
        let each = checks.into_iter();
        batch
            .expects
            .extend(each.map(|check| Expect::completing(check, 0)));
    }
}

/// What was measured in one window.
#[derive(Clone, Copy, Debug, serde::Serialize)]
struct Sample {
    /// Operations per second.
    rate: f64,
    /// CPU-microseconds of all nodes for an operation.
    cpu_us: f64,
}

/// The same operations alone and in transactions, in windows that take turns.
#[derive(Debug, serde::Serialize)]
struct Row {
    setting: &'static str,
    workload: &'static str,
    size: usize,
    alone: Vec<Sample>,
    grouped: Vec<Sample>,
}

impl Row {
    fn ratio(&self, of: impl Fn(&Sample) -> f64) -> Summary {
        let pairs = self.grouped.iter().zip(&self.alone);
        Summary::of(pairs.map(|(grouped, alone)| of(grouped) / of(alone)))
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
            popularity: Zipfian::new(keys, YCSB_THETA),
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
    popularity: Zipfian,
    setting: Setting,
    load: Load,
    nodes: &'o Nodes,
}

impl Bench<'_> {
    fn row(&mut self, workload: Workload, size: usize) -> Result<Row> {
        let windows = self.options.common.pick(self.options.windows, 7, 2);
        let (mut alone, mut grouped) = (Vec::new(), Vec::new());
        // The first of each is not counted.
        for round in 0..=windows {
            for is_grouped in [false, true] {
                let mut operations = Operations {
                    workload,
                    popularity: self.popularity.clone(),
                    size,
                    is_grouped,
                    rng: Rng::new(round as u64),
                };
                let sample = self.window(&mut operations)?;
                let samples = if is_grouped { &mut grouped } else { &mut alone };
                if round > 0 {
                    samples.push(sample);
                }
            }
        }
        Ok(Row {
            setting: self.setting.name,
            workload: workload.name,
            size,
            alone,
            grouped,
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
         clients at the plain endpoint of each node send operations on keys with YCSB's popularity, values of {VALUE_BYTES} bytes: as a pipeline, or between MULTI and EXEC, in windows that \
         take turns. CPU time of all nodes by the kernel's account; the clients have the rest of the machine. Medians and quartiles of the ratios of neighbouring windows."
    )]
}

const HEADERS: &str = "cluster | workload | operations at a time | 1000 alone/s | 1000 in transactions/s | ratio | CPU-µs alone | CPU-µs in transactions | target";

fn table(rows: &[Row], has_target: bool) -> Table {
    let mut table = Table::new(3, HEADERS);
    for row in rows {
        let rate = row.ratio(|sample| sample.rate);
        let of =
            |samples: &[Sample], of: fn(&Sample) -> f64| Summary::of(samples.iter().map(of)).median;
        let verdict = format!("{} {}", TARGET.show(), TARGET.verdict(rate.median));
        table.row(vec![
            row.setting.to_owned(),
            row.workload.to_owned(),
            row.size.to_string(),
            format!("{:.1}", of(&row.alone, |sample| sample.rate) / 1000.0),
            format!("{:.1}", of(&row.grouped, |sample| sample.rate) / 1000.0),
            rate.show(),
            format!("{:.1}", of(&row.alone, |sample| sample.cpu_us)),
            format!("{:.1}", of(&row.grouped, |sample| sample.cpu_us)),
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
            "YCSB's workload A reads and writes by halves, B reads 95 %, C reads alone. F changes a record by INCR in half of its operations: within MULTI no client \
             reads before it writes."
                .into(),
            "Over three nodes a transaction waits for copies and log of each worker with slots of it, twice (docs/adr/0058); operations alone wait once, and only writes do. Transactions that only read wait for neither, and are asked for twice (docs/adr/0063)."
                .into(),
        ],
        data: json!(rows),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_operations_are_alone_and_in_a_transaction() {
        let operations = |is_grouped| {
            let mut source = Operations {
                workload: NINE.rows[0].0,
                popularity: Zipfian::new(1000, YCSB_THETA),
                size: 8,
                is_grouped,
                rng: Rng::new(7),
            };
            let mut batch = Batch::default();
            source.fill(0, &mut batch);
            (String::from_utf8(batch.out).unwrap(), batch.expects.len())
        };
        let ((alone, replies), (grouped, more)) = (operations(false), operations(true));
        assert_eq!((replies, more), (8, 18));
        let inside = grouped.strip_prefix("*1\r\n$5\r\nMULTI\r\n").unwrap();
        assert_eq!(inside.strip_suffix("*1\r\n$4\r\nEXEC\r\n"), Some(&*alone));
    }
}
