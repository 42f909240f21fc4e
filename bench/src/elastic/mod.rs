//! `cargo xtask demo elastic`: nodes join, drain and are killed under two clients that
//! remember everything they were told.
//!
//! One client knows the cluster and goes to who has a key; the other one knows the address of
//! a server, and nothing else. What is wrong at the end: an acknowledged write that is not
//! there, an answer that cannot be, or an error that a client cannot be asked to live with.
//!
//! | module | concept |
//! |---|---|
//! | [`ledger`] | what a writer was told, and what is wrong with what it reads |
//! | [`outcome`] | errors, and what each says of its request |
//! | [`record`] | answers and errors over time |
//! | [`writers`] | the clients |

pub mod ledger;
pub mod outcome;
pub mod record;
pub mod writers;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;

use crate::nodes::{Nodes, Program};
use crate::table::Table;
use ledger::Ledger;
use record::Summary;
use writers::{Load, Pace, Seen};

/// Bytes of each text.
const VALUE_BYTES: usize = 64;
/// Nodes that the cluster begins with.
const NODES: usize = 3;
/// The only phase in which clients may meet errors.
const KILLED: &str = "node 1 is killed";
/// Wrong answers that are shown.
const SHOWN: usize = 20;

#[derive(Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    program: Program,
    #[arg(long, default_value_t = 1)]
    workers: usize,
    /// Copies of each slot
    #[arg(long, default_value_t = 2)]
    copies: usize,
    /// How long clients go on after each change
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Writers of each client
    #[arg(long, default_value_t = 8)]
    writers: usize,
    /// Keys of each writer
    #[arg(long, default_value_t = 500)]
    keys: usize,
    /// Between two requests of a writer
    #[arg(long, default_value_t = 1000)]
    pause_us: u64,
}

impl Options {
    fn ledgers(&self, client: &str) -> Vec<Ledger> {
        let ledger = |no| Ledger::new(&format!("{client}{no}"), self.keys, VALUE_BYTES);
        (0..self.writers.max(1)).map(ledger).collect()
    }
}

/// One stretch of the demonstration.
struct Phase {
    name: String,
    during: Range<Duration>,
    /// What was timed in it.
    said: Vec<String>,
}

/// Runs it, prints it; true where nothing was lost and nobody met what he should not.
pub fn run(options: &Options) -> Result<bool> {
    let mut nodes = Nodes::new(options.program.plan(options.workers, options.copies)?)?;
    println!(
        "1. {NODES} nodes on this machine, {} of each slot",
        match options.copies {
            1 => "one copy".to_owned(),
            copies => format!("{copies} copies"),
        },
    );
    for _ in 0..NODES {
        nodes.start()?;
    }
    println!(
        "   all copies are there after {}",
        shown(nodes.until_whole()?)
    );
    let load = Load {
        began: Instant::now(),
        ends: Arc::new(AtomicBool::new(false)),
        pace: Pace::After(Duration::from_micros(options.pause_us)),
    };
    println!(
        "\n2. Two clients of {} writers each write and read; nodes come and go",
        options.writers
    );
    let plains: Vec<_> = nodes.running().iter().map(|node| node.plain).collect();
    let doors: Vec<_> = nodes.running().iter().map(|node| node.door).collect();
    let knowing = writers::knowing(&doors, options.ledgers("k"), load.clone());
    let plain = writers::plain(&plains, options.ledgers("p"), &load);
    let mut phases = Vec::new();
    let happened = happen(options, &mut nodes, load.began, &mut phases);
    load.ends.store(true, Ordering::Relaxed);
    let (knowing, stats) = writers::join(knowing)?;
    let mut others = Seen::default();
    for writer in plain {
        let seen = writers::join(writer)?;
        others.ledgers.extend(seen.ledgers);
        others.records.extend(seen.records);
    }
    let clients = [("knows the cluster", &knowing), ("plain", &others)];
    println!("\n3. What the clients saw\n");
    print(&phases, &clients);
    println!(
        "The client that knows the cluster followed {} redirections, asked {} times again, and for the slots {} times.",
        stats.moved, stats.retries, stats.refreshes
    );
    happened?;
    println!("\n4. The account");
    let is_right = account(&nodes, &clients, Duration::ZERO..load.began.elapsed())?;
    let planned = phases.iter().filter(|phase| phase.name != KILLED);
    let met: u64 = planned
        .flat_map(|phase| {
            let during = &phase.during;
            clients
                .iter()
                .map(|(_, seen)| Summary::of(&seen.records, during.clone()))
        })
        .flat_map(|summary| summary.errors.into_values())
        .sum();
    if met > 0 {
        println!("{met} errors while nodes came and went as planned.");
    }
    Ok(is_right && met == 0)
}

/// What happens to the nodes.
fn happen(
    options: &Options,
    nodes: &mut Nodes,
    began: Instant,
    phases: &mut Vec<Phase>,
) -> Result<()> {
    let pause = Duration::from_secs(options.seconds);
    let mut phase =
        |name: &str, nodes: &mut Nodes, act: &dyn Fn(&mut Nodes) -> Result<Vec<String>>| {
            println!("   {name}");
            let start = began.elapsed();
            let acted = act(nodes).with_context(|| name.to_owned());
            let said = acted.as_ref().map_or_else(|_| Vec::new(), Vec::clone);
            said.iter().for_each(|line| println!("      {line}"));
            if acted.is_ok() {
                std::thread::sleep(pause);
            }
            phases.push(Phase {
                name: name.to_owned(),
                during: start..began.elapsed(),
                said,
            });
            acted?;
            nodes.all_run()
        };
    phase("three nodes", nodes, &|_| Ok(Vec::new()))?;
    phase("a fourth joins", nodes, &joins)?;
    phase("node 2 drains and stops", nodes, &drains)?;
    phase(KILLED, nodes, &is_killed)
}

fn joins(nodes: &mut Nodes) -> Result<Vec<String>> {
    nodes.start()?;
    let took = nodes.until_whole()?;
    Ok(vec![format!("it has its share after {}", shown(took))])
}

fn drains(nodes: &mut Nodes) -> Result<Vec<String>> {
    let drained = nodes.drain(2)?;
    nodes.stop(2)?;
    let whole = nodes.until_whole()?;
    Ok(vec![
        format!("it has nothing any more after {}", shown(drained)),
        format!(
            "and has stopped; all copies are there {} later",
            shown(whole)
        ),
    ])
}

fn is_killed(nodes: &mut Nodes) -> Result<Vec<String>> {
    nodes.kill(1)?;
    let left = nodes.running().len();
    let noticed = nodes.until("it is missed", |look| look.alive == left)?;
    let whole = noticed + nodes.until_whole()?;
    Ok(vec![
        format!("it is missed after {}", shown(noticed)),
        format!("all copies are back after {}", shown(whole)),
    ])
}

fn print(phases: &[Phase], clients: &[(&str, &Seen)]) {
    let headers = "phase | client | answers | errors | median | p99 | longest | longest silence";
    let mut table = Table::new(2, headers);
    for phase in phases {
        for (at, (name, seen)) in clients.iter().enumerate() {
            let summary = Summary::of(&seen.records, phase.during.clone());
            let first = if at == 0 { phase.name.as_str() } else { "" };
            table.row(vec![
                first.to_owned(),
                (*name).to_owned(),
                summary.answers.to_string(),
                summary.errors.values().sum::<u64>().to_string(),
                shown(summary.median),
                shown(summary.p99),
                shown(summary.longest),
                shown(summary.gap),
            ]);
        }
    }
    println!("{}", table.terminal());
    for phase in phases {
        let said = errors(clients, phase.during.clone());
        for line in phase.said.iter().chain(&said) {
            println!("{}: {line}", phase.name);
        }
    }
}

fn errors(clients: &[(&str, &Seen)], during: Range<Duration>) -> Vec<String> {
    let of = |(name, seen): &(&str, &Seen)| {
        let summary = Summary::of(&seen.records, during.clone());
        let kinds = summary.errors.iter();
        let kinds: Vec<_> = kinds
            .map(|(kind, count)| format!("{count} × {kind}"))
            .collect();
        (!kinds.is_empty()).then(|| {
            format!(
                "errors of the client that {}: {}",
                is(name),
                kinds.join(", ")
            )
        })
    };
    clients.iter().filter_map(of).collect()
}

fn is(name: &str) -> &str {
    match name {
        "plain" => "is plain",
        other => other,
    }
}

/// Judges all that the clients have seen, and reads all keys again at both doors.
fn account(nodes: &Nodes, clients: &[(&str, &Seen)], all: Range<Duration>) -> Result<bool> {
    let node = nodes.running().last().context("no node is left")?;
    let mut wrong: Vec<String> = Vec::new();
    let (mut keys, mut acknowledged, mut doubts, mut wrongs) = (0, 0, 0, 0);
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    for (_, seen) in clients {
        for ledger in &seen.ledgers {
            keys += ledger.all().count();
            acknowledged += ledger.acknowledged;
            doubts += ledger.doubts();
            wrongs += ledger.wrongs;
            wrong.extend(
                ledger
                    .wrong
                    .iter()
                    .map(|wrong| format!("while writing: {wrong}")),
            );
        }
        for (kind, count) in Summary::of(&seen.records, all.clone()).errors {
            *kinds.entry(kind).or_default() += count;
        }
        for (door, found) in [
            ("plain", writers::audit_plain(node.plain, &seen.ledgers)?),
            (
                "redirecting",
                writers::audit_knowing(node.door, &seen.ledgers)?,
            ),
        ] {
            wrongs += found.len() as u64;
            wrong.extend(
                found
                    .iter()
                    .map(|wrong| format!("at the {door} door: {wrong}")),
            );
        }
    }
    println!(
        "   {acknowledged} writes were acknowledged, {doubts} are in doubt; {keys} keys were read at both doors"
    );
    let (passing, others): (Vec<_>, Vec<_>) = kinds
        .iter()
        .partition(|(kind, _)| outcome::is_retriable(kind));
    for (title, kinds) in [("errors that pass", &passing), ("OTHER ERRORS", &others)] {
        for (kind, count) in kinds {
            println!("   {title}: {count} × {kind}");
        }
    }
    for wrong in wrong.iter().take(SHOWN) {
        println!("   WRONG {wrong}");
    }
    match (wrongs, others.is_empty()) {
        (0, true) => println!("\nNo acknowledged write is lost, and no error but what passes."),
        (0, false) => println!("\nErrors that no client should meet."),
        (wrongs, _) => println!("\n{wrongs} answers are not as acknowledged."),
    }
    Ok(wrongs == 0 && others.is_empty())
}

fn shown(time: Duration) -> String {
    match time.as_micros() {
        us @ 0..1_000 => format!("{us} µs"),
        us @ 1_000..1_000_000 => format!("{:.1} ms", us as f64 / 1e3),
        us => format!("{:.2} s", us as f64 / 1e6),
    }
}
