//! A node joins under load (Anna 2018, Figure 7): how much less is answered meanwhile, how long until all is
//! balanced, and how much had to be moved.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

use super::driven::{self, Driven};
use super::options::{Common, rufous};
use super::over_time::{Course, TimeChart};
use rufous_bench::client::{Client, encode};
use rufous_bench::elastic::writers::Pace;
use rufous_bench::nodes::{Node, Nodes, Program};
use rufous_bench::procfs::Machine;
use rufous_bench::report::Report;
use rufous_bench::sections;
use rufous_bench::stats::Target;
use rufous_bench::table::Table;

const NODES: usize = 3;
const COPIES: usize = 2;
const SLOTS: f64 = 16384.0;
const VALUE_BYTES: usize = 1000;
/// What is left of the throughput, at least, while the node joins.
const LEFT: Target = Target::AtLeast(0.8);

#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    pub common: Common,
    /// How long the load goes on before, and after [default: 10, quick 3]
    #[arg(long)]
    pub seconds: Option<u64>,
    /// Keys with values of 1000 bytes, beside those that are written [default: 200000, quick 2000]
    #[arg(long)]
    pub keys: Option<usize>,
    /// Bytes a second that each node sends of what moves, as `cluster-move-rate` has it [default: 2mb]
    #[arg(long, default_value = "2mb")]
    pub move_rate: String,
    /// Requests a second of the second course [default: a third of the answers of the first]
    #[arg(long)]
    pub rate: Option<f64>,
    #[command(flatten)]
    pub program: Program,
}

/// What came of it.
struct Added {
    name: &'static str,
    driven: Driven,
    from: Duration,
    /// From the start of the process until all was balanced.
    took: Duration,
    received: u64,
    /// What the new node's share of the keys is, at least.
    least: f64,
}

/// Runs it, prints it, and writes the page where the options say.
pub(crate) fn run(options: &Options) -> Result<()> {
    let machine = Machine::read();
    let time = Duration::from_secs(options.common.pick(options.seconds, 10, 3).max(1));
    let (all, version) = added(options, time, driven::ALL, "as much as they are answered")?;
    let rate = options.rate.unwrap_or_else(|| all.before() / 3.0);
    let (some, _) = added(options, time, driven::rate(rate), "at a set rate")?;
    let both = [all, some];
    let report = report(&both, time);
    let charts = [("node-added.svg", chart(&both).svg()?)];
    let common = &options.common;
    common.publish(&machine, rufous(version), &[report], &charts)
}

/// Once, with a cluster of its own.
fn added(
    options: &Options,
    time: Duration,
    pace: Pace,
    name: &'static str,
) -> Result<(Added, String)> {
    let keys = options.common.pick(options.keys, 200_000, 2_000);
    let plan = options.program.plan(1, COPIES)?;
    let mut nodes = Nodes::new(plan.with(&[
        "--appendonly",
        "yes",
        "--appendfsync",
        "everysec",
        "--cluster-move-rate",
        &options.move_rate,
    ]))?;
    for _ in 0..NODES {
        nodes.start()?;
    }
    nodes.until_whole()?;
    let info = nodes.running()[0].client()?.call(&["INFO", "server"])?;
    let version = sections::version(&info.text()?);
    let bytes = fill(&mut nodes.running()[0].client()?, keys)?;
    Ok((measured(&mut nodes, name, (pace, time), bytes)?, version))
}

/// Writes keys, and says how many bytes they and their values have.
fn fill(client: &mut Client, keys: usize) -> Result<f64> {
    let value = [b'x'; VALUE_BYTES];
    let mut bytes = 0;
    for first in (0..keys).step_by(500) {
        let (mut out, past) = (Vec::new(), keys.min(first + 500));
        for key in first..past {
            let key = format!("filled:{key}");
            bytes += key.len() + value.len();
            encode(&mut out, &[b"SET", key.as_bytes(), &value]);
        }
        client.send(&out)?;
        for _ in first..past {
            client.receive()?.text()?;
        }
    }
    Ok(bytes as f64)
}

fn measured(
    nodes: &mut Nodes,
    name: &'static str,
    (pace, time): (Pace, Duration),
    bytes: f64,
) -> Result<Added> {
    let seeds: Vec<_> = nodes.running().iter().map(|node| node.door).collect();
    let happens = |began: std::time::Instant| {
        let from = began.elapsed();
        let no = nodes.start()?;
        let started = began.elapsed() - from;
        let took = started + nodes.until_whole()?;
        let node = nodes.get(no)?;
        let received = received(node)?;
        let share = nodes.look()?.slots_with(node.door.port()) as f64 / SLOTS;
        std::thread::sleep(time);
        nodes.all_run()?;
        Ok(((from, took, received, share), nodes.running()[0].door))
    };
    let (driven, (from, took, received, share)) = driven::drive(&seeds, (pace, time), happens)?;
    Ok(Added {
        name,
        driven,
        from,
        took,
        received,
        least: share * bytes,
    })
}

/// Bytes that came from other nodes.
fn received(node: &Node) -> Result<u64> {
    let info = node.client()?.call(&["INFO", "cluster"])?.text()?;
    let field = info
        .lines()
        .find_map(|line| line.strip_prefix("cluster_bytes_received:"));
    Ok(field.unwrap_or("0").trim().parse()?)
}

impl Added {
    /// Answers a second before the node starts.
    fn before(&self) -> f64 {
        self.driven.rate(Duration::from_secs(1), self.from)
    }

    /// In the lowest second while it joins.
    fn lowest(&self) -> f64 {
        // A second at least, however soon all is there.
        let took = self.took.max(Duration::from_millis(1500));
        self.driven.lowest(self.from, self.from + took)
    }

    fn left(&self) -> f64 {
        self.lowest() / self.before().max(1.0)
    }

    fn row(&self, time: Duration) -> Vec<String> {
        let (driven, until) = (&self.driven, self.from + self.took);
        let calm = driven.lowest(Duration::from_secs(1), self.from) / self.before().max(1.0);
        vec![
            self.name.to_owned(),
            format!("{:.0}", self.before()),
            format!("{calm:.2}"),
            format!("{:.0}", self.lowest()),
            format!("{:.2}", self.left()),
            format!("{:.0}", driven.rate(until, until + time)),
            format!("{:.2}", self.took.as_secs_f64()),
            format!("{:.1}", self.received as f64 / 1e6),
            format!("{:.1}", self.least / 1e6),
            driven.wrong.to_string(),
            driven.errors.values().sum::<u64>().to_string(),
        ]
    }

    fn data(&self) -> Value {
        let driven = &self.driven;
        json!({
            "name": self.name,
            "answers": driven.counts,
            "started_s": self.from.as_secs_f64(),
            "balanced_s": self.took.as_secs_f64(),
            "received_bytes": self.received,
            "least_bytes": self.least,
            "acknowledged": driven.acknowledged,
            "wrong": driven.wrong,
            "errors": driven.errors,
        })
    }
}

fn report(both: &[Added], time: Duration) -> Report {
    let headers = "writers ask | answers/s before | lowest second before | lowest second while it joins | \
         of before | after | balanced after, s | MB received | least, MB | wrong or lost | \
         errors";
    let mut table = Table::new(1, headers);
    both.iter().for_each(|added| table.row(added.row(time)));
    let note = |added: &Added| {
        format!(
            "Left of the throughput in the lowest second, {}: {}, {}.",
            added.name,
            LEFT.show(),
            LEFT.verdict(added.left())
        )
    };
    Report {
        slug: "node-added",
        part_of: None,
        title: "A node joins under load".into(),
        command: "cargo xtask figures node-added".into(),
        method: vec![
            format!(
                "{NODES} nodes with a worker each and {COPIES} copies of each slot; 16 writers of one client that knows the cluster ask, \
                 half of them reads, half SET and INCR: without a pause, and then, with a new cluster, a third as often, at set \
                 times; who was kept waiting catches up. A fourth node is started, and takes its share. All processes are on this \
                 machine, so without a pause the new node takes its CPU time from the others. What it received has in it what was \
                 written meanwhile; the least is its share of the keys that were there before."
            ),
            "![Answers a second](node-added.svg)".into(),
        ],
        table,
        chart: None,
        notes: both.iter().map(note).collect(),
        data: json!({ "courses": both.iter().map(Added::data).collect::<Vec<_>>() }),
    }
}

fn chart(both: &[Added]) -> TimeChart {
    let course = |added: &Added| {
        let (from, took) = (added.from.as_secs_f64(), added.took.as_secs_f64());
        Course {
            name: format!("from 3 to 4 nodes, {}", added.name),
            points: added.driven.points(),
            marks: vec![from, from + took],
        }
    };
    TimeChart {
        title: "Answers a second while a node joins".into(),
        y_axis: "answers a second".into(),
        courses: both.iter().map(course).collect(),
    }
}
