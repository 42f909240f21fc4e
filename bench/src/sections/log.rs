//! What logging every write costs beside no log and beside the peers, and how many writes a second
//! there are where each is synced.

use std::time::Duration;

use anyhow::{Result, bail};
use serde::Serialize;
use serde_json::json;

use super::durable::{LOGGED, PAGE, better_peer, figures, order, verdict};
use super::{Context, SHAPE, command};
use crate::loadgen::keys::Keys;
use crate::loadgen::source::Mix;
use crate::loadgen::template::Command;
use crate::measure::{Contestant, Measured, Sample, interleave, interleave_settled, ratio};
use crate::options::RUFOUS;
use crate::progress::Progress;
use crate::report::Report;
use crate::servers::ServerSpec;
use crate::stats::{Summary, Target};
use crate::table::Table;

const PIPELINE: usize = 16;
/// CPU per write, everysec to no log.
const LOG_COSTS: Target = Target::AtMost(1.15);
/// CPU per write, everysec to the better peer's everysec.
const BESIDE_PEERS: Target = Target::AtMost(0.5);
/// Writes per second, always to the better peer's always.
const SYNCED: Target = Target::AtLeast(1.0);
/// The sync of what a window wrote has begun within a second, and is done soon after.
const SETTLE: Duration = Duration::from_millis(1_500);
/// Connections and pipeline where every write is synced.
const SYNCED_ROWS: [(&str, usize, usize); 3] = [
    ("always, 1 connection", 1, 1),
    ("always, 50 connections", 50, 1),
    ("always, 50 connections, pipeline 16", 50, 16),
];

/// A ratio that has a target.
#[derive(Serialize)]
struct Comparison {
    with: String,
    ratio: Summary,
    target: Target,
    met: bool,
}

impl Comparison {
    fn new(with: &str, ratio: Summary, target: Target) -> Self {
        Self {
            with: with.to_owned(),
            ratio,
            target,
            met: target.met(ratio.median),
        }
    }

    fn cells(&self) -> Vec<String> {
        verdict(
            &self.with,
            self.ratio.median,
            self.ratio.show(),
            self.target,
        )
    }
}

/// A measured line.
#[derive(Serialize)]
struct Outcome {
    label: &'static str,
    servers: Vec<Measured>,
    #[serde(skip)]
    rows: Vec<Vec<String>>,
    comparisons: Vec<Comparison>,
}

impl Outcome {
    fn new(
        label: &'static str,
        names: &[String],
        samples: &[Vec<Sample>],
        comparisons: Vec<Comparison>,
    ) -> Self {
        let lines = names.iter().zip(samples).enumerate();
        Self {
            label,
            servers: names
                .iter()
                .zip(samples)
                .map(|(name, samples)| Measured::of(name, samples))
                .collect(),
            rows: lines
                .map(|(i, (name, samples))| figures(if i == 0 { label } else { "" }, name, samples))
                .collect(),
            comparisons,
        }
    }

    fn line(&self) -> String {
        let told: Vec<String> = self
            .comparisons
            .iter()
            .map(|c| {
                let (ratio, target) = (c.ratio.median, c.target);
                let verdict = target.verdict(ratio);
                format!(
                    "{ratio:.2} of {}, target {}: {verdict}",
                    c.with,
                    target.show()
                )
            })
            .collect();
        format!("{}: {}", self.label, told.join("; "))
    }
}

pub fn run(context: &mut Context) -> Result<Report> {
    let specs = context.options.durable_contestants()?;
    let steps = 2 * specs.len() + 2 + SYNCED_ROWS.len();
    let progress = Progress::new("log", steps as u64);
    let mut outcomes = vec![cost(context, &specs, &progress)?];
    outcomes.extend(synced(context, &specs, &progress)?);
    Ok(report(context, &outcomes))
}

fn start(
    context: &mut Context,
    spec: &ServerSpec,
    keys: u64,
    progress: &Progress,
) -> Result<Contestant> {
    progress.doing(&format!("loading {}", spec.name));
    let connections = context.options.connections;
    let contestant = Contestant::start(spec, Command::Set, SHAPE, keys, connections)?;
    context.note_version(&contestant.server)?;
    progress.advance(1);
    Ok(contestant)
}

/// Everysec beside no log: CPU per write.
fn cost(context: &mut Context, specs: &[ServerSpec], progress: &Progress) -> Result<Outcome> {
    let keys = context.options.keys();
    let (mut names, mut labels, mut contestants) = (Vec::new(), Vec::new(), Vec::new());
    for spec in specs {
        if spec.name == RUFOUS {
            contestants.push(start(context, spec, keys, progress)?);
            names.push(spec.name.as_str());
            labels.push(format!("{}, no log", spec.name));
        }
        let logged = spec.with(&LOGGED).with(&["--appendfsync", "everysec"]);
        contestants.push(start(context, &logged, keys, progress)?);
        names.push(&spec.name);
        labels.push(format!("{}, everysec", spec.name));
    }
    progress.doing("SET, everysec");
    let source = Mix::one(Command::Set, SHAPE, Keys::Uniform(keys), PIPELINE);
    let rounds = context.options.rounds();
    let samples = interleave_settled(&mut contestants, &source, rounds, SETTLE)?;
    let cpu = |s: &Sample| s.cpu_us_per_op;
    let Some(peer) = better_peer(&names, &samples, cpu, true) else {
        bail!("no peer");
    };
    // Rufous comes last, without log and with it.
    let (plain, ours) = (names.len() - 2, names.len() - 1);
    let against = |other: usize, target| {
        let ratio = ratio(&samples[ours], &samples[other], cpu);
        Comparison::new(&labels[other], ratio, target)
    };
    let comparisons = vec![against(plain, LOG_COSTS), against(peer, BESIDE_PEERS)];
    let outcome = Outcome::new("SET, pipeline 16", &labels, &samples, comparisons);
    progress.say(&outcome.line());
    progress.advance(1);
    Ok(outcome)
}

/// Always: writes per second.
fn synced(
    context: &mut Context,
    specs: &[ServerSpec],
    progress: &Progress,
) -> Result<Vec<Outcome>> {
    let keys = (context.options.keys() / 10).max(1);
    let mut contestants = Vec::new();
    for spec in specs {
        let logged = spec.with(&LOGGED).with(&["--appendfsync", "everysec"]);
        let contestant = start(context, &logged, keys, progress)?;
        let mut client = contestant.server.client()?;
        order(&mut client, &["CONFIG", "SET", "appendfsync", "always"])?;
        contestants.push(contestant);
    }
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    let labels: Vec<String> = specs.iter().map(|spec| spec.name.clone()).collect();
    let mut outcomes = Vec::new();
    for (label, connections, pipeline) in SYNCED_ROWS {
        progress.doing(label);
        for contestant in &mut contestants {
            contestant.reconnect(connections)?;
        }
        let source = Mix::one(Command::Set, SHAPE, Keys::Uniform(keys), pipeline);
        let samples = interleave(&mut contestants, &source, context.options.rounds())?;
        let kops = |s: &Sample| s.kops;
        let Some(peer) = better_peer(&names, &samples, kops, false) else {
            bail!("no peer");
        };
        let ratio = ratio(&samples[names.len() - 1], &samples[peer], kops);
        let comparison = Comparison::new(names[peer], ratio, SYNCED);
        let outcome = Outcome::new(label, &labels, &samples, vec![comparison]);
        progress.say(&outcome.line());
        outcomes.push(outcome);
        progress.advance(1);
    }
    Ok(outcomes)
}

fn report(context: &Context, outcomes: &[Outcome]) -> Report {
    let headers = "writes | server | CPU-µs/op (quartiles) | kops/s | p50 ms | p99 ms | others' cores | \
         ratio to | ratio | target | ";
    let mut table = Table::new(2, headers);
    for outcome in outcomes {
        let Some((last, before)) = outcome.rows.split_last() else {
            continue;
        };
        before.iter().for_each(|row| table.row(row.clone()));
        // The first comparison stands in Rufous's row, others below.
        let mut row = last.clone();
        for comparison in &outcome.comparisons {
            row.extend(comparison.cells());
            table.row(std::mem::replace(&mut row, vec![String::new(); 7]));
        }
    }
    let comparisons = || outcomes.iter().flat_map(|o| &o.comparisons);
    let met = comparisons().filter(|c| c.met).count();
    Report {
        slug: "log",
        part_of: Some(PAGE),
        title: "What the log costs".into(),
        command: command("log"),
        method: method(context),
        table,
        chart: None,
        notes: vec![format!("{met} of {} targets met.", comparisons().count())],
        data: json!(outcomes),
    }
}

fn method(context: &Context) -> Vec<String> {
    let options = &context.options;
    let rounds = options.rounds();
    vec![
        format!(
            "Each server with all its threads runs on processor {}, the load generator on processor \
             {}: a closed loop over {} connections, keys of 8 B drawn uniformly from {} (a tenth of \
             them for *always*), values of 64 B, every reply checked. Windows of {} ms alternate, {} \
             each. Every server has a folder of its own on the same disk; none rewrites its log \
             meanwhile.",
            options.server_core,
            options.load_core,
            options.connections,
            options.keys(),
            rounds.window.as_millis(),
            rounds.count,
        ),
        format!(
            "Rows with *everysec* compare CPU per write: user and system time of all threads, also \
             what a server uses up to {} ms after the last window of a round, so that the sync of \
             what it wrote is in it. Rows with *always* compare writes per second.",
            SETTLE.as_millis(),
        ),
    ]
}
