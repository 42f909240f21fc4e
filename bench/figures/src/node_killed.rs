//! A node is killed under load: how soon it is missed, how long nobody answers, and what is lost;
//! beside Redis Cluster on this machine with the same fault.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::driven::{self, Driven};
use super::options::Common;
use super::over_time::{Course, TimeChart};
use rufous_bench::nodes::redis::RedisCluster;
use rufous_bench::nodes::{Nodes, Program};
use rufous_bench::procfs::Machine;
use rufous_bench::report::Report;
use rufous_bench::sections;
use rufous_bench::stats::Target;
use rufous_bench::table::Table;

const NODES: usize = 3;
const COPIES: usize = 2;
const DETECTION_S: Target = Target::AtMost(2.5);
const LOST: Target = Target::AtMost(0.0);

#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    pub common: Common,
    /// How long the load goes on before, and after [default: 10, quick 3]
    #[arg(long)]
    pub seconds: Option<u64>,
    /// Leave Redis Cluster out
    #[arg(long)]
    pub no_peers: bool,
    #[command(flatten)]
    pub program: Program,
}

/// What one system did.
struct Killed {
    name: &'static str,
    driven: Driven,
    at: Duration,
    missed: Duration,
    /// Until every slot had its copies again.
    whole: Option<Duration>,
}

/// Runs it, prints it, and writes the page where the options say.
pub(crate) fn run(options: &Options) -> Result<()> {
    let machine = Machine::read();
    let time = Duration::from_secs(options.common.pick(options.seconds, 10, 3).max(1));
    let (killed, version) = rufous(options, time)?;
    let mut all = vec![killed];
    let mut versions = vec![("rufous".to_owned(), version)];
    if !options.no_peers {
        let (killed, version) = redis(time)?;
        all.push(killed);
        versions.push(("redis".to_owned(), version));
    }
    let report = report(&all, time);
    let charts = [("node-killed.svg", chart(&all).svg()?)];
    let common = &options.common;
    common.publish(&machine, versions, &[report], &charts)
}

fn rufous(options: &Options, time: Duration) -> Result<(Killed, String)> {
    let plan = options.program.plan(1, COPIES)?;
    let mut nodes = Nodes::new(plan.with(&["--appendonly", "yes", "--appendfsync", "everysec"]))?;
    for _ in 0..NODES {
        nodes.start()?;
    }
    nodes.until_whole()?;
    let info = nodes.running()[0].client()?.call(&["INFO", "server"])?;
    let version = sections::version(&info.text()?);
    let seeds: Vec<_> = nodes.running().iter().map(|node| node.door).collect();
    let (driven, (at, missed, whole)) = driven::drive(&seeds, (driven::ALL, time), |began| {
        let at = began.elapsed();
        nodes.kill(1)?;
        let left = nodes.running().len();
        let missed = nodes.until("it is missed", |look| look.alive == left)?;
        let whole = missed + nodes.until_whole()?;
        std::thread::sleep(time);
        nodes.all_run()?;
        Ok(((at, missed, Some(whole)), nodes.running()[0].door))
    })?;
    let name = "Rufous, 3 nodes with 2 copies";
    let killed = Killed {
        name,
        driven,
        at,
        missed,
        whole,
    };
    Ok((killed, version))
}

fn redis(time: Duration) -> Result<(Killed, String)> {
    let mut cluster = RedisCluster::start()?;
    let version = cluster.version()?;
    let (driven, (at, missed)) =
        driven::drive(&cluster.addresses(), (driven::ALL, time), |began| {
            let at = began.elapsed();
            let missed = cluster.kill()?;
            std::thread::sleep(time);
            Ok(((at, missed), cluster.addresses()[0]))
        })?;
    let killed = Killed {
        name: "Redis Cluster, 3 masters and 3 replicas",
        driven,
        at,
        missed,
        whole: None,
    };
    Ok((killed, version))
}

fn report(all: &[Killed], time: Duration) -> Report {
    let headers = "system | answers/s before | after | missed after, s | longest silence, s | \
         all copies after, s | acknowledged | in doubt | wrong or lost | other errors";
    let mut table = Table::new(1, headers);
    for killed in all {
        let driven = &killed.driven;
        let back = killed.at + killed.missed + Duration::from_secs(1);
        let seconds = |time: Duration| format!("{:.2}", time.as_secs_f64());
        table.row(vec![
            killed.name.to_owned(),
            format!("{:.0}", driven.rate(Duration::from_secs(1), killed.at)),
            format!("{:.0}", driven.rate(back, back + time)),
            seconds(killed.missed),
            seconds(driven.gap),
            killed.whole.map_or("–".into(), seconds),
            driven.acknowledged.to_string(),
            driven.doubts.to_string(),
            driven.wrong.to_string(),
            driven.other_errors().to_string(),
        ]);
    }
    let mut notes = Vec::new();
    if let Some(first) = all.first() {
        let (missed, lost) = (first.missed.as_secs_f64(), first.driven.wrong as f64);
        notes.push(format!(
            "Missed: {} s, {}.",
            DETECTION_S.show(),
            DETECTION_S.verdict(missed)
        ));
        notes.push(format!("Lost: {}, {}.", LOST.show(), LOST.verdict(lost)));
    }
    let data = all.iter().map(|killed| {
        json!({
            "system": killed.name,
            "killed_s": killed.at.as_secs_f64(),
            "missed_s": killed.missed.as_secs_f64(),
            "whole_s": killed.whole.map(|time| time.as_secs_f64()),
            "gap_s": killed.driven.gap.as_secs_f64(),
            "acknowledged": killed.driven.acknowledged,
            "doubts": killed.driven.doubts,
            "wrong": killed.driven.wrong,
            "errors": killed.driven.errors,
            "answers": killed.driven.counts,
        })
    });
    Report {
        slug: "node-killed",
        part_of: None,
        title: "A node is killed under load".into(),
        command: "cargo xtask figures node-killed".into(),
        method: method(),
        table,
        chart: None,
        notes,
        data: json!(data.collect::<Vec<_>>()),
    }
}

fn method() -> Vec<String> {
    vec![
        "16 writers of one client that knows the cluster ask without a pause, half of them reads, half SET and INCR; each \
         remembers what was acknowledged, and all keys are read again at the end. A node is killed with `kill -9`: \
         of Rufous the one that plans, of Redis Cluster a master. All write their logs (everysec), and all processes are on this machine. The node timeout of Redis \
         Cluster is 2 s, as the lease of Rufous."
            .into(),
        "![Answers a second](node-killed.svg)".into(),
    ]
}

fn chart(all: &[Killed]) -> TimeChart {
    let course = |killed: &Killed| Course {
        name: killed.name.to_owned(),
        points: killed.driven.points(),
        marks: vec![killed.at.as_secs_f64()],
    };
    TimeChart {
        title: "Answers a second while a node is killed".into(),
        y_axis: "answers a second".into(),
        courses: all.iter().map(course).collect(),
    }
}
