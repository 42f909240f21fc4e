//! A node joins under load (Anna 2018, Figure 7): how much less is answered meanwhile, how long until all is
//! balanced, and how much had to be moved.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::driven::{self, Driven};
use super::over_time::{Course, TimeChart};
use crate::client::{Client, encode};
use crate::nodes::{Node, Nodes, Program};
use crate::procfs::Machine;
use crate::report::{Report, Setting};
use crate::sections;
use crate::stats::Target;
use crate::table::Table;

const NODES: usize = 3;
const COPIES: usize = 2;
const SLOTS: f64 = 16384.0;
const VALUE_BYTES: usize = 1000;
/// What is left of the throughput, at least, while the node joins.
const LEFT: Target = Target::AtLeast(0.8);

#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Short, with few keys: shows that everything runs
    #[arg(long)]
    pub quick: bool,
    /// How long the load goes on before, and after [default: 10, quick 3]
    #[arg(long)]
    pub seconds: Option<u64>,
    /// Keys with values of 1000 bytes, beside those that are written [default: 200000, quick 2000]
    #[arg(long)]
    pub keys: Option<usize>,
    /// Bytes a second that each node sends of what moves, as `cluster-move-rate` has it [default: 2mb]
    #[arg(long, default_value = "2mb")]
    pub move_rate: String,
    #[command(flatten)]
    pub program: Program,
    /// Where the page goes [default: docs/benchmarks; quick: nowhere]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// What came of it.
struct Added {
    driven: Driven,
    from: Duration,
    /// From the start of the process until all was balanced.
    took: Duration,
    received: u64,
    /// What the new node's share of the keys is, at least.
    least: f64,
}

/// Runs it, prints it, and writes the page where the options say.
pub fn run(options: &Options) -> Result<()> {
    let machine = Machine::read();
    let usual = if options.quick { 3 } else { 10 };
    let time = Duration::from_secs(options.seconds.unwrap_or(usual).max(1));
    let keys = options
        .keys
        .unwrap_or(if options.quick { 2_000 } else { 200_000 });
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
    let added = measured(&mut nodes, time, bytes)?;
    let report = report(&added, time);
    println!("{}", report.terminal());
    let usual = (!options.quick).then(|| PathBuf::from("docs/benchmarks"));
    let Some(dir) = options.out.clone().or(usual) else {
        return Ok(());
    };
    let versions = [("rufous".to_owned(), version)].into();
    report.write(&dir, &Setting { machine, versions })?;
    Ok(std::fs::write(
        dir.join("node-added.svg"),
        chart(&added).svg()?,
    )?)
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

fn measured(nodes: &mut Nodes, time: Duration, bytes: f64) -> Result<Added> {
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
    let (driven, (from, took, received, share)) = driven::drive(&seeds, time, happens)?;
    Ok(Added {
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

fn report(added: &Added, time: Duration) -> Report {
    let headers = [
        "answers/s before",
        "lowest second while it joins",
        "of before",
        "after",
        "balanced after, s",
        "MB received",
        "least, MB",
        "wrong or lost",
        "errors",
    ];
    let driven = &added.driven;
    let before = driven.rate(Duration::from_secs(1), added.from);
    let until = added.from + added.took;
    // A second at least, however soon all is there.
    let lowest = driven.lowest(
        added.from,
        until.max(added.from + Duration::from_millis(1500)),
    );
    let left = lowest / before.max(1.0);
    let mut table = Table::new(0, headers);
    table.row(vec![
        format!("{before:.0}"),
        format!("{lowest:.0}"),
        format!("{left:.2}"),
        format!("{:.0}", driven.rate(until, until + time)),
        format!("{:.2}", added.took.as_secs_f64()),
        format!("{:.1}", added.received as f64 / 1e6),
        format!("{:.1}", added.least / 1e6),
        driven.wrong.to_string(),
        driven.errors.values().sum::<u64>().to_string(),
    ]);
    Report {
        slug: "node-added",
        part_of: None,
        title: "A node joins under load".into(),
        command: "cargo xtask figures node-added".into(),
        method: vec![
            format!(
                "{NODES} nodes with a worker each and {COPIES} copies of each slot; 16 writers of one client that knows the cluster ask \
                 without a pause, half of them reads, half SET and INCR. A fourth node is started, and takes its share. All processes are on this \
                 machine, so the new node takes its CPU time from the others. What it received has in it what was \
                 written meanwhile; the least is its share of the keys that were there before."
            ),
            "![Answers a second](node-added.svg)".into(),
        ],
        table,
        chart: None,
        notes: vec![format!(
            "Left of the throughput in the lowest second: {}, {}.",
            LEFT.show(),
            LEFT.verdict(left)
        )],
        data: json!({
            "answers": driven.counts,
            "started_s": added.from.as_secs_f64(),
            "balanced_s": added.took.as_secs_f64(),
            "received_bytes": added.received,
            "least_bytes": added.least,
            "acknowledged": driven.acknowledged,
            "wrong": driven.wrong,
            "errors": driven.errors,
        }),
    }
}

fn chart(added: &Added) -> TimeChart {
    let (from, took) = (added.from.as_secs_f64(), added.took.as_secs_f64());
    TimeChart {
        title: "Answers a second while a node joins".into(),
        y_axis: "answers a second".into(),
        courses: vec![Course {
            name: "Rufous, from 3 to 4 nodes".into(),
            points: added.driven.points(),
            marks: vec![from, from + took],
        }],
    }
}
