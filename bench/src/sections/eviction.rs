//! What a SET costs at the memory limit, where most new keys put others out.

use anyhow::{Result, bail};
use serde::Serialize;
use serde_json::json;

use super::durable::{PAGE, figures, number, order};
use super::{Context, SHAPE, command};
use crate::loadgen::keys::{Keys, MAX_KEYS};
use crate::loadgen::load::Load;
use crate::loadgen::source::{Mix, Preload};
use crate::loadgen::template::Command;
use crate::measure::{Contestant, Measured, Sample, interleave, preload, ratio, window};
use crate::options::RUFOUS;
use crate::progress::Progress;
use crate::report::Report;
use crate::servers::ServerSpec;
use crate::stats::{Summary, Target};
use crate::table::Table;

const PIPELINE: usize = 16;
/// Of throughput, and of operations per CPU time, to those without a limit.
const TARGET: Target = Target::AtLeast(0.7);
const POLICIES: [&str; 2] = ["allkeys-lru", "allkeys-lfu"];
/// By so much may used memory be above the limit between two commands.
const OVER: f64 = 1.05;

/// A policy of one server beside no limit.
#[derive(Serialize)]
struct Limited {
    policy: &'static str,
    measured: Measured,
    #[serde(skip)]
    row: Vec<String>,
    throughput: Summary,
    per_cpu: Summary,
    met: bool,
    /// Keys held at the end, and put out during the windows.
    held: u64,
    evicted: u64,
    /// Keys put out per SET.
    evicted_share: f64,
}

impl Limited {
    /// Operations per CPU time to those without a limit where as many keys are new, which is worked
    /// out of the two rows without a limit.
    fn beside_new_keys(&self, outcome: &Outcome) -> f64 {
        let cpu = |measured: &Measured| measured.cpu_us_per_op.median;
        let (known, new) = (cpu(&outcome.unlimited), cpu(&outcome.growing));
        (known + (new - known) * self.evicted_share) / cpu(&self.measured)
    }

    /// The worse of the two.
    fn worse(&self) -> f64 {
        self.throughput.median.min(self.per_cpu.median)
    }
}

/// One server.
#[derive(Serialize)]
struct Outcome {
    server: String,
    unlimited: Measured,
    /// Without a limit, too, and nearly every key new.
    growing: Measured,
    #[serde(skip)]
    rows: [Vec<String>; 2],
    limited: Vec<Limited>,
}

pub fn run(context: &mut Context) -> Result<Report> {
    let specs = context.options.contestants()?;
    let steps = specs.len() * (POLICIES.len() + 3);
    let progress = Progress::new("eviction", steps as u64);
    let mut outcomes = Vec::new();
    for spec in &specs {
        let outcome = measure(context, spec, &progress)?;
        for limited in &outcome.limited {
            progress.say(&format!(
                "{}, {}: {:.2} of the throughput, {:.2} of the operations per CPU time",
                spec.name, limited.policy, limited.throughput.median, limited.per_cpu.median
            ));
        }
        outcomes.push(outcome);
    }
    Ok(report(context, &outcomes))
}

fn measure(context: &mut Context, spec: &ServerSpec, progress: &Progress) -> Result<Outcome> {
    let (keys, connections) = (context.options.keys(), context.options.connections);
    progress.doing(&format!("{}: loading", spec.name));
    let unlimited = Contestant::start(spec, Command::Set, SHAPE, keys, connections)?;
    context.note_version(&unlimited.server)?;
    progress.advance(1);
    let mut contestants = vec![unlimited];
    let mut before = Vec::new();
    for policy in POLICIES {
        progress.doing(&format!("{}: filling up to its limit, {policy}", spec.name));
        let contestant = at_limit(spec, policy, keys, connections)?;
        before.push(evicted(&contestant)?);
        contestants.push(contestant);
        progress.advance(1);
    }
    progress.doing(&format!("{}: SET", spec.name));
    let source = Mix::one(Command::Set, SHAPE, Keys::Uniform(keys), PIPELINE);
    let samples = interleave(&mut contestants, &source, context.options.rounds())?;
    progress.advance(1);
    // Last, since it may need much memory.
    let growing = grow(&contestants[0], keys, context)?;
    progress.advance(1);
    let (plain, at_limit) = (&samples[0], &samples[1..]);
    let mut limited = Vec::new();
    for (i, policy) in POLICIES.into_iter().enumerate() {
        let contestant = &contestants[i + 1];
        limited.push(judge(contestant, policy, plain, &at_limit[i], before[i])?);
    }
    Ok(Outcome {
        server: spec.name.clone(),
        unlimited: Measured::of(&spec.name, plain),
        growing: Measured::of(&spec.name, &growing),
        rows: [
            figures("no limit", &spec.name, plain),
            figures("no limit, new keys", "", &growing),
        ],
        limited,
    })
}

/// What it costs that keys are new, of which eviction needs as many: SETs of keys that the server
/// does not have.
fn grow(contestant: &Contestant, keys: u64, context: &Context) -> Result<Vec<Sample>> {
    let server = &contestant.server;
    let rounds = context.options.rounds();
    let mut samples = Vec::new();
    let mut source = Preload::new(Command::Set, SHAPE, keys..MAX_KEYS, PIPELINE);
    let mut load = Load::connect(server.addr, context.options.connections)?;
    for _ in 0..rounds.count {
        samples.push(window(server, &mut load, &mut source, rounds.window)?);
    }
    Ok(samples)
}

/// A server whose limit is what half of the keys take, after all of them were written.
fn at_limit(spec: &ServerSpec, policy: &str, keys: u64, connections: usize) -> Result<Contestant> {
    let half = keys / 2;
    let contestant = Contestant::start(spec, Command::Set, SHAPE, half, connections)?;
    let mut client = contestant.server.client()?;
    let limit = number(&mut client, "memory", "used_memory")?.to_string();
    order(&mut client, &["CONFIG", "SET", "maxmemory-policy", policy])?;
    order(&mut client, &["CONFIG", "SET", "maxmemory", &limit])?;
    preload(&contestant.server, Command::Set, SHAPE, half..keys)?;
    Ok(contestant)
}

fn evicted(contestant: &Contestant) -> Result<u64> {
    number(&mut contestant.server.client()?, "stats", "evicted_keys")
}

fn judge(
    contestant: &Contestant,
    policy: &'static str,
    plain: &[Sample],
    samples: &[Sample],
    evicted_before: u64,
) -> Result<Limited> {
    let name = &contestant.server.name;
    let mut client = contestant.server.client()?;
    let used = number(&mut client, "memory", "used_memory")?;
    let limit = number(&mut client, "memory", "maxmemory")?;
    if used as f64 > limit as f64 * OVER {
        bail!("{name}, {policy}: uses {used} bytes with a limit of {limit}");
    }
    let evicted = evicted(contestant)? - evicted_before;
    if evicted == 0 {
        bail!("{name}, {policy}: nothing was evicted, so that nothing was measured");
    }
    // The windows, and the third of one that comes first and is not counted.
    let windows = samples.len() as f64;
    let counted: u64 = samples.iter().map(|s| s.operations).sum();
    let sets = counted as f64 * (windows + 1.0 / 3.0) / windows;
    let throughput = ratio(samples, plain, |s| s.kops);
    let per_cpu = ratio(samples, plain, |s| 1.0 / s.cpu_us_per_op);
    let worse = throughput.median.min(per_cpu.median);
    Ok(Limited {
        policy,
        measured: Measured::of(name, samples),
        row: figures(policy, "", samples),
        throughput,
        per_cpu,
        met: TARGET.met(worse),
        held: u64::try_from(client.call(&["DBSIZE"])?.integer()?)?,
        evicted,
        evicted_share: evicted as f64 / sets,
    })
}

fn report(context: &Context, outcomes: &[Outcome]) -> Report {
    let headers = "limit | server | CPU-µs/op (quartiles) | kops/s | p50 ms | p99 ms | others' cores | \
         throughput × | operations per CPU time × | target | ";
    let mut table = Table::new(2, headers);
    let mut notes = Vec::new();
    for outcome in outcomes {
        outcome.rows.iter().for_each(|row| table.row(row.clone()));
        for limited in &outcome.limited {
            let mut cells = limited.row.clone();
            cells.extend([limited.throughput.show(), limited.per_cpu.show()]);
            if outcome.server == RUFOUS {
                cells.extend(TARGET.cells(limited.worse()));
            }
            table.row(cells);
            notes.push(format!(
                "{}, {}: {} keys held, {} put out during the windows, {:.2} per SET; beside as many \
                 new keys without a limit, {:.2} of the operations per CPU time.",
                outcome.server,
                limited.policy,
                limited.held,
                limited.evicted,
                limited.evicted_share,
                limited.beside_new_keys(outcome),
            ));
        }
    }
    let keys = context.options.keys();
    let rounds = context.options.rounds();
    Report {
        slug: "eviction-speed",
        part_of: Some(PAGE),
        title: "SET at the memory limit".into(),
        command: command("eviction"),
        method: vec![format!(
            "SET with keys of 8 B drawn uniformly from {keys} and values of 64 B, {} connections, \
             pipeline {PIPELINE}. Without a limit every key is there and overwritten; the limit is \
             what half of the keys take, so that about every second SET brings a new key and puts \
             another out. Windows of {} ms alternate between the three servers of a kind, {} each; \
             ratios window by window, and the target holds for the worse of the two. *New keys* shows \
             what it costs alone that a key is not there yet; it is measured afterwards.",
            context.options.connections,
            rounds.window.as_millis(),
            rounds.count,
        )],
        table,
        chart: None,
        notes,
        data: json!(outcomes),
    }
}
