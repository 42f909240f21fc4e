//! How long changes of keyspaces stop a node that has a million keys to convert.
//!
//! Every worker waits while a change converts keys, so what counts is the wall
//! time of the command, and the longest that another client waits meanwhile for
//! a key which the change does not concern.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::json;

use super::options::{Common, rufous};
use rufous_bench::client::{Client, encode};
use rufous_bench::options::RufousOptions;
use rufous_bench::procfs::Machine;
use rufous_bench::progress::Progress;
use rufous_bench::report::Report;
use rufous_bench::sections;
use rufous_bench::servers::{Server, ServerSpec};
use rufous_bench::stats::Summary;
use rufous_bench::table::Table;

const WORKERS: usize = 2;
const VALUE_BYTES: usize = 100;
/// Commands that are sent before their replies are read.
const PIPELINE: u64 = 1000;
/// How often the other client asks.
const ASKS: Duration = Duration::from_millis(1);

/// What is changed, one after the other.
const CHANGES: [(&str, &str); 6] = [
    (
        "strict keys become lattice keys",
        "CREATE c PREFIX c: REGIME lattice",
    ),
    ("values get causal order", "ALTER c LEVEL causal"),
    ("and lose it", "ALTER c LEVEL eventual"),
    ("one replica each", "ALTER c THREADS 1"),
    ("replicas everywhere", "ALTER c THREADS all"),
    ("strict again", "DROP c"),
];

#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    #[command(flatten)]
    pub common: Common,
    /// Keys, with values of 100 bytes; a change converts at most a million, each replica counted
    /// [default: 500000, quick 2000]
    #[arg(long)]
    pub keys: Option<u64>,
    /// How often everything is done, on a new server each time [default: 3, quick 1]
    #[arg(long)]
    pub rounds: Option<usize>,
    #[command(flatten)]
    pub rufous: RufousOptions,
}

impl Options {
    fn keys(&self) -> u64 {
        self.common.pick(self.keys, 500_000, 2_000).max(1)
    }

    fn rounds(&self) -> usize {
        self.common.pick(self.rounds, 3, 1).max(1)
    }
}

/// What one change took, in seconds.
#[derive(Clone, Copy, Debug, serde::Serialize)]
struct Taken {
    wall: f64,
    cpu: f64,
    /// The longest that the other client waited.
    waited: f64,
}

/// Runs it, prints it, and writes the page where the options say.
pub(crate) fn run(options: &Options) -> Result<()> {
    let machine = Machine::read();
    let spec = options.rufous.spec()?.with_workers(WORKERS);
    let spec = spec.with(&["--pin", "no", "--appendonly", "yes"]);
    let steps = (options.rounds() * CHANGES.len()) as u64;
    let progress = Progress::new("converting", steps);
    let mut all = vec![Vec::new(); CHANGES.len()];
    let mut version = String::new();
    for _ in 0..options.rounds() {
        version = round(options, &spec, &progress, &mut all)?;
    }
    let (common, report) = (&options.common, report(options, &all));
    common.publish(&machine, rufous(version), &[report], &[])
}

/// All changes on a new server; its version.
fn round(
    options: &Options,
    spec: &ServerSpec,
    progress: &Progress,
    all: &mut [Vec<Taken>],
) -> Result<String> {
    progress.doing("writing keys");
    let server = Server::start(spec)?;
    let mut client = server.client()?;
    let info = client.call(&["INFO", "server"])?.text()?;
    let version = sections::version(&info);
    client.call(&["SET", "other", "1"])?.text()?;
    fill(&mut client, options.keys())?;
    for (taken, (_, change)) in all.iter_mut().zip(CHANGES) {
        progress.doing(change);
        taken.push(measured(&server, &mut client, change)?);
        let left = client.call(&["DBSIZE"])?.integer()?;
        ensure!(left as u64 == options.keys() + 1, "{left} keys are left");
        progress.advance(1);
    }
    Ok(version)
}

fn fill(client: &mut Client, keys: u64) -> Result<()> {
    let value = [b'x'; VALUE_BYTES];
    for first in (0..keys).step_by(PIPELINE as usize) {
        let (mut out, past) = (Vec::new(), keys.min(first + PIPELINE));
        for key in first..past {
            encode(&mut out, &[b"SET", format!("c:{key}").as_bytes(), &value]);
        }
        client.send(&out)?;
        for _ in first..past {
            client.receive()?.text()?;
        }
    }
    Ok(())
}

fn measured(server: &Server, client: &mut Client, change: &str) -> Result<Taken> {
    // What was written before is in the log and at all replicas.
    thread::sleep(Duration::from_secs(1));
    let (ends, worst) = (Arc::new(AtomicBool::new(false)), AtomicU64::new(0));
    let worst = Arc::new(worst);
    let other = {
        let (ends, worst, client) = (Arc::clone(&ends), Arc::clone(&worst), server.client()?);
        thread::spawn(move || ask_on(client, &ends, &worst))
    };
    thread::sleep(ASKS * 20);
    let words: Vec<&str> = ["KEYSPACE"].into_iter().chain(change.split(' ')).collect();
    let (cpu, began) = (server.cpu_time()?, Instant::now());
    let reply = client.call(&words)?.text();
    let (wall, cpu) = (began.elapsed(), server.cpu_time()? - cpu);
    ends.store(true, Ordering::Relaxed);
    let asked = other.join();
    reply.with_context(|| words.join(" "))?;
    asked.map_err(|_| anyhow::anyhow!("the other client panicked"))??;
    Ok(Taken {
        wall: wall.as_secs_f64(),
        cpu: cpu.as_secs_f64(),
        waited: Duration::from_micros(worst.load(Ordering::Relaxed)).as_secs_f64(),
    })
}

/// Asks for another key again and again; how long it waited at most.
fn ask_on(mut client: Client, ends: &AtomicBool, worst: &AtomicU64) -> Result<()> {
    while !ends.load(Ordering::Relaxed) {
        let began = Instant::now();
        client.call(&["GET", "other"])?.text()?;
        worst.fetch_max(began.elapsed().as_micros() as u64, Ordering::Relaxed);
        thread::sleep(ASKS);
    }
    Ok(())
}

fn report(options: &Options, all: &[Vec<Taken>]) -> Report {
    let headers =
        "what happens | KEYSPACE … | seconds | CPU seconds | another client waits at most";
    let mut table = Table::new(2, headers);
    for (taken, (what, change)) in all.iter().zip(CHANGES) {
        let of = |field: fn(&Taken) -> f64| Summary::of(taken.iter().map(field)).show();
        table.row(vec![
            what.to_owned(),
            format!("`{change}`"),
            of(|t| t.wall),
            of(|t| t.cpu),
            of(|t| t.waited),
        ]);
    }
    let changes = CHANGES.map(|(_, change)| change);
    Report {
        slug: "converting",
        part_of: None,
        title: "How long changes of keyspaces take".into(),
        command: "cargo xtask figures converting".into(),
        method: vec![format!(
            "One node with {WORKERS} workers and its log on has {} keys with values of {VALUE_BYTES} bytes; a lattice key \
             has a replica at each worker unless it says otherwise. Each change is done once, in this order, on \
             each of {} new servers; median and quartiles, in seconds. Meanwhile another client asks for \
             a key that no change concerns, every {} ms.",
            options.keys(),
            options.rounds(),
            ASKS.as_millis(),
        )],
        table,
        chart: None,
        notes: vec![
            "Everything waits while keys are converted; what each change does to keys is in \
             docs/keyspaces.md."
                .into(),
        ],
        data: json!({ "changes": changes, "taken": all }),
    }
}
