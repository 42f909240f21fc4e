//! What it costs that a node passes requests on to another one: CPU time of both, beside that of
//! requests that go to who has the key.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use rufous_base::rng::Rng;
use rufous_base::slot::slot_of;
use serde_json::json;

use super::options::{Common, rufous};
use rufous_bench::client::{Client, encode};
use rufous_bench::loadgen::conn::{Batch, Expect};
use rufous_bench::loadgen::load::{Load, Stop};
use rufous_bench::loadgen::reply::Check;
use rufous_bench::loadgen::source::Source;
use rufous_bench::nodes::{Nodes, Program};
use rufous_bench::procfs::{self, Machine};
use rufous_bench::progress::Progress;
use rufous_bench::report::Report;
use rufous_bench::sections;
use rufous_bench::stats::{Summary, Target};
use rufous_bench::table::Table;

const CONNECTIONS: usize = 50;
const VALUE_BYTES: usize = 64;
const PIPELINES: [usize; 2] = [1, 16];
/// What passing a request on may cost against answering it at once.
const TARGET: Target = Target::AtMost(2.0);

/// How a request comes to who has its key.
const WAYS: [&str; 3] = [
    "to the owner",
    "to another node, which passes it on",
    "to the owner, at the endpoint that redirects",
];

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

/// Reads or writes of random keys of one node.
#[derive(Clone)]
struct Owned {
    keys: Arc<Vec<Vec<u8>>>,
    writes: bool,
    pipeline: usize,
    rng: Rng,
}

impl Source for Owned {
    fn fill(&mut self, _conn: usize, batch: &mut Batch) {
        for _ in 0..self.pipeline {
            let key = &self.keys[self.rng.below(self.keys.len() as u64) as usize];
            let (words, check): (&[&[u8]], _) = match self.writes {
                true => (&[b"SET", key, &[b'v'; VALUE_BYTES]], Check::Simple),
                false => (&[b"GET", key], Check::Bulk),
            };
            encode(&mut batch.out, words);
            batch.expects.push(Expect::completing(check, 0));
        }
    }
}

/// What was measured in one window, in µs of CPU time for each operation.
#[derive(Clone, Copy, Debug, serde::Serialize)]
struct Sample {
    owner: f64,
    other: f64,
}

impl Sample {
    fn both(&self) -> f64 {
        self.owner + self.other
    }
}

struct Row {
    writes: bool,
    pipeline: usize,
    /// For each way.
    samples: [Vec<Sample>; WAYS.len()],
}

/// Runs it, prints it, and writes the page where the options say.
pub(crate) fn run(options: &Options) -> Result<()> {
    let machine = Machine::read();
    // Without copies: what chains cost is another matter.
    let mut nodes = Nodes::new(options.program.plan(1, 1)?)?;
    nodes.start()?;
    nodes.start()?;
    nodes.until_whole()?;
    let keys = keys(&nodes, options.common.pick(None, 100_000, 1_000))?;
    let version = version(&nodes)?;
    fill(&mut nodes.running()[0].client()?, &keys)?;
    let rows = measured(options, &nodes, &Arc::new(keys))?;
    let report = report(&rows);
    let common = &options.common;
    common.publish(&machine, rufous(version), &[report], &[])
}

fn version(nodes: &Nodes) -> Result<String> {
    let info = nodes.running()[0].client()?.call(&["INFO", "server"])?;
    Ok(sections::version(&info.text()?))
}

/// Keys of the first node.
fn keys(nodes: &Nodes, wanted: usize) -> Result<Vec<Vec<u8>>> {
    let owner = nodes.running()[0].door.port();
    let mut is_owned = Vec::new();
    for (slots, chain) in nodes.look()?.chains {
        is_owned.extend(std::iter::repeat_n(chain.first() == Some(&owner), slots));
    }
    ensure!(is_owned.contains(&true), "the first node has no slot");
    let all = (0_u64..).map(|n| format!("k{n}").into_bytes());
    let owned = all.filter(|key| is_owned.get(usize::from(slot_of(key))) == Some(&true));
    Ok(owned.take(wanted).collect())
}

fn fill(client: &mut Client, keys: &[Vec<u8>]) -> Result<()> {
    for some in keys.chunks(500) {
        let mut out = Vec::new();
        for key in some {
            encode(&mut out, &[b"SET", key, &[b'v'; VALUE_BYTES]]);
        }
        client.send(&out)?;
        for _ in some {
            client.receive()?.text()?;
        }
    }
    Ok(())
}

fn measured(options: &Options, nodes: &Nodes, keys: &Arc<Vec<Vec<u8>>>) -> Result<Vec<Row>> {
    let (owner, other) = (&nodes.running()[0], &nodes.running()[1]);
    let mut loads = Vec::new();
    for addr in [owner.plain, other.plain, owner.door] {
        loads.push(Load::connect(addr, CONNECTIONS)?);
    }
    let windows = options.common.pick(options.windows, 9, 2);
    let time = Duration::from_millis(options.common.pick(None, 500, 150));
    let mut rows = Vec::new();
    let steps = PIPELINES.len() * 2 * windows;
    let progress = Progress::new("forwarding", steps as u64);
    for pipeline in PIPELINES {
        for writes in [false, true] {
            let mut samples = [const { Vec::new() }; WAYS.len()];
            // The first of each is not counted.
            for round in 0..=windows {
                for (load, samples) in loads.iter_mut().zip(&mut samples) {
                    let mut source = Owned {
                        keys: Arc::clone(keys),
                        writes,
                        pipeline,
                        rng: Rng::new(round as u64),
                    };
                    let before = cpu(owner.process(), other.process())?;
                    let window = load.run(&mut source, Stop::After(time))?;
                    let after = cpu(owner.process(), other.process())?;
                    let done = window.operations() as f64;
                    ensure!(done > 0.0, "nothing was answered");
                    if round > 0 {
                        samples.push(Sample {
                            owner: (after.0 - before.0) * 1e6 / done,
                            other: (after.1 - before.1) * 1e6 / done,
                        });
                    }
                }
                progress.advance(u64::from(round > 0));
            }
            rows.push(Row {
                writes,
                pipeline,
                samples,
            });
        }
    }
    Ok(rows)
}

/// Seconds of both.
fn cpu(owner: u32, other: u32) -> Result<(f64, f64)> {
    let of = |pid| procfs::cpu_time(pid).context("a node has ended");
    Ok((of(owner)?.as_secs_f64(), of(other)?.as_secs_f64()))
}

fn report(rows: &[Row]) -> Report {
    let headers = "requests | go | CPU-µs of the owner | of the other node | of both, against direct | \
         target";
    let mut table = Table::new(2, headers);
    for row in rows {
        let name = if row.writes { "SET" } else { "GET" };
        for (way, samples) in WAYS.iter().zip(&row.samples) {
            let direct = &row.samples[0];
            let pairs = samples.iter().zip(direct);
            let ratio = Summary::of(pairs.map(|(one, direct)| one.both() / direct.both()));
            let verdict = match *way == WAYS[1] {
                true => format!("{} {}", TARGET.show(), TARGET.verdict(ratio.median)),
                false => String::new(),
            };
            table.row(vec![
                format!("{name}, {} at a time", row.pipeline),
                (*way).to_owned(),
                Summary::of(samples.iter().map(|sample| sample.owner)).show(),
                Summary::of(samples.iter().map(|sample| sample.other)).show(),
                ratio.show(),
                verdict,
            ]);
        }
    }
    let data = rows.iter().map(
        |row| json!({ "writes": row.writes, "pipeline": row.pipeline, "samples": row.samples }),
    );
    Report {
        slug: "forwarding",
        part_of: None,
        title: "What it costs to pass a request on".into(),
        command: "cargo xtask figures forwarding".into(),
        method: vec![format!(
            "Two nodes of one cluster with a worker each and one copy of each slot. {CONNECTIONS} connections ask for \
             random keys of the first node, with values of {VALUE_BYTES} bytes, in windows that take turns: at the plain endpoint \
             of that node, at that of the other one, and at the endpoint of that node for clients that know the cluster. CPU time of each node's process by the \
             kernel's account, for each operation; median and quartiles."
        )],
        table,
        chart: None,
        notes: vec![
            "A node that is not asked has some CPU time, too: it says that it is there.".into(),
        ],
        data: json!(data.collect::<Vec<_>>()),
    }
}
