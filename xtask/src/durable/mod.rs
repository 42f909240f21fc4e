//! `cargo xtask demo durable`: clients that remember what they were told, a node
//! that is killed under them again and again, and an account of every key.

// The clients are those of the tests of the server, and need the standard library alone.
#[allow(dead_code, reason = "the tests use all of it")]
#[path = "../../../crates/node/tests/durability/audit/mod.rs"]
mod audit;

use crate::process::{self, cargo};
use crate::project;
use anyhow::{Context, Result, bail, ensure};
use audit::wire::{Connection, Reply};
use audit::{Findings, Ledger, Load, ledger};
use rufous_ports::free_port;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Clients, and commands that each has under way at most.
const CLIENTS: usize = 8;
const DEPTH: usize = 16;

const START_LIMIT: Duration = Duration::from_secs(60);

/// How long the clients drive the node before it is killed.
const DRIVE: Duration = Duration::from_millis(700);

/// Workers from round to round: fewer, then more.
const WORKERS: [usize; 6] = [1, 3, 2, 4, 4, 1];

/// What goes on beside when the node is killed.
const BESIDE: [(&str, &[&str]); 4] = [
    ("-", &[]),
    ("BGSAVE", &["BGSAVE"]),
    ("BGREWRITEAOF", &["BGREWRITEAOF"]),
    ("both", &["BGSAVE", "BGREWRITEAOF"]),
];

pub(crate) struct Args {
    pub(crate) rounds: usize,
    pub(crate) keys: usize,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    println!("1. Build");
    process::run(cargo().args(["build", "--release", "--package", "rufous-node"]))?;
    println!(
        "\n2. {CLIENTS} clients write {} keys: SET, APPEND, DEL, INCRBY, values that expire, MSET\n   \
         and RENAME over several workers, transactions. Each remembers what was acknowledged.\n   \
         The node is killed with kill -9 under this load, starts again with fewer or more\n   \
         workers, and every key is compared.",
        args.keys
    );
    let mut lost = 0;
    for fsync in ["always", "everysec", "no"] {
        println!("\n--appendfsync {fsync}");
        lost += mode(fsync, args).with_context(|| format!("--appendfsync {fsync}"))?;
    }
    if lost > 0 {
        println!("\n{lost} objects are not as acknowledged.");
    } else {
        println!("\nEverything acknowledged is there; nothing happened by halves.");
    }
    Ok(lost == 0)
}

/// One line of the account.
fn line(cells: [&str; 10]) {
    let widths = [5, 7, 12, 12, 8, 8, 8, 8, 6, 9];
    let text: Vec<_> = cells
        .iter()
        .zip(widths)
        .map(|(cell, width)| format!("{cell:>width$}"))
        .collect();
    println!("{}", text.join(" "));
}

/// All rounds in one mode. Returns how much is not as acknowledged.
fn mode(fsync: &str, args: &Args) -> Result<usize> {
    let folder = Folder::new()?;
    let each = args.keys.div_ceil(CLIENTS);
    let mut ledgers: Vec<_> = (0..CLIENTS).map(|n| Ledger::new(n, each, 1)).collect();
    let mut node = Node::start(&folder.0, fsync, 2)?;
    for ledger in &mut ledgers {
        ledger.fill(&mut Connection::open(node.port)?)?;
    }
    line([
        "round",
        "workers",
        "killed in",
        "acknowledged",
        "keys",
        "there",
        "unknown",
        "of these",
        "lost",
        "load",
    ]);
    line([
        "", "", "", "writes", "right", "", "outcome", "happened", "", "ms",
    ]);
    let mut lost = 0;
    for round in 0..args.rounds {
        let before = acknowledged(&ledgers);
        let beside = BESIDE[round % BESIDE.len()];
        ledgers = drive_and_kill(node, ledgers, beside.1)?;
        let wrong = ledgers
            .iter_mut()
            .flat_map(|l| std::mem::take(&mut l.wrong));
        let wrong: Vec<_> = wrong.collect();
        let workers = WORKERS[round % WORKERS.len()];
        node = Node::start(&folder.0, fsync, workers)?;
        let found = ledger::audit_all(&mut ledgers, node.port)?;
        let bad = report(
            round,
            workers,
            beside.0,
            acknowledged(&ledgers) - before,
            &node,
            &found,
        );
        lost += bad + wrong.len();
        wrong
            .iter()
            .for_each(|text| println!("      wrong answer: {text}"));
    }
    let refused: u64 = ledgers.iter().map(|ledger| ledger.refused).sum();
    ensure!(
        refused == 0,
        "{refused} writes were refused: {:?}",
        refusals(&ledgers)
    );
    // What a stop in good order leaves has no tail to cut.
    node.stop()?;
    let node = Node::start(&folder.0, fsync, 2)?;
    let found = ledger::audit_all(&mut ledgers, node.port)?;
    Ok(lost + report(args.rounds, 2, "(stopped)", 0, &node, &found))
}

fn acknowledged(ledgers: &[Ledger]) -> u64 {
    ledgers.iter().map(|ledger| ledger.acknowledged).sum()
}

fn refusals(ledgers: &[Ledger]) -> Vec<&String> {
    ledgers.iter().flat_map(|ledger| &ledger.refusals).collect()
}

fn drive_and_kill(mut node: Node, ledgers: Vec<Ledger>, beside: &[&str]) -> Result<Vec<Ledger>> {
    let load = Load::start(node.port, ledgers, DEPTH);
    std::thread::sleep(DRIVE);
    for name in beside {
        let reply = Connection::open(node.port)?.run(&[name])?;
        ensure!(
            matches!(reply, Reply::Status(_)),
            "{name} was answered {reply:?}"
        );
    }
    if !beside.is_empty() {
        // Into the middle of it.
        std::thread::sleep(Duration::from_millis(10));
    }
    ensure!(node.child.try_wait()?.is_none(), "the node ended by itself");
    node.child.kill()?;
    node.child.wait()?;
    Ok(load.stop())
}

/// Prints one round. Returns how much is not as acknowledged.
fn report(
    round: usize,
    workers: usize,
    beside: &str,
    acknowledged: u64,
    node: &Node,
    found: &Findings,
) -> usize {
    let right = found.keys.saturating_sub(found.lost.len() as u64);
    line([
        &(round + 1).to_string(),
        &workers.to_string(),
        beside,
        &acknowledged.to_string(),
        &right.to_string(),
        &found.present.to_string(),
        &(found.happened + found.not_happened).to_string(),
        &found.happened.to_string(),
        &found.lost.len().to_string(),
        &node.loaded_in.as_millis().to_string(),
    ]);
    for text in found.lost.iter().take(20) {
        println!("      {text}");
    }
    found.lost.len()
}

/// A data folder that goes with this value.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let path = project::target().join(format!("demo-durable-{}", std::process::id()));
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Node {
    child: Child,
    port: u16,
    /// From the start of the process until clients were served.
    loaded_in: Duration,
}

impl Node {
    fn start(dir: &Path, fsync: &str, workers: usize) -> Result<Self> {
        let (port, began) = (free_port()?, Instant::now());
        let child = Command::new(project::server_binary())
            .args([
                "server",
                "--bind",
                "127.0.0.1",
                "--admin-port",
                "0",
                "--dir",
            ])
            .arg(dir)
            .args([
                "--port",
                &port.to_string(),
                "--workers",
                &workers.to_string(),
            ])
            .args(["--appendonly", "yes", "--appendfsync", fsync, "--save", ""])
            .args(["--log-segment-size", "1mb", "--loglevel", "warning"])
            .stdin(Stdio::null())
            .spawn()
            .context("cannot start the server")?;
        let mut node = Self {
            child,
            port,
            loaded_in: Duration::ZERO,
        };
        while !node.serves() {
            if let Some(status) = node.child.try_wait()? {
                bail!("the server ended with {status}");
            }
            ensure!(began.elapsed() < START_LIMIT, "the server does not answer");
            std::thread::sleep(Duration::from_millis(1));
        }
        node.loaded_in = began.elapsed();
        Ok(node)
    }

    /// Whether a question on a key is answered, not refused because of loading.
    fn serves(&self) -> bool {
        let ask = || Connection::open(self.port)?.run(&["EXISTS", "anything"]);
        matches!(ask(), Ok(Reply::Int(_)))
    }

    fn stop(&mut self) -> Result<()> {
        let status = process::stop(&mut self.child)?;
        ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
