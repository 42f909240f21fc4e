//! Commands that start servers and the load generator: thin, because measuring is the business of
//! `rufous-bench`.

use crate::process::{self, cargo, line, stop};
use crate::project;
use crate::{durable, merge, network, types};
use anyhow::{Context, Result, bail, ensure};
use rufous_ports::free_port;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const START_LIMIT: Duration = Duration::from_secs(20);

#[derive(clap::Args)]
pub(crate) struct PassThrough {
    /// Arguments for rufous-bench; `--help` after `--` shows them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

#[derive(clap::Args)]
pub(crate) struct DemoArgs {
    /// What to show
    what: Demo,
    /// node: records and operations of each YCSB workload
    #[arg(long, default_value_t = 100_000)]
    records: u64,
    /// durable: how often the node is killed in each mode
    #[arg(long, default_value_t = 8)]
    rounds: usize,
    /// durable: about how many keys there are
    #[arg(long, default_value_t = 40_000)]
    keys: usize,
    /// elastic: arguments for `rufous-bench elastic`, faults, bank and levels: for `rufous-network`; `--help` after
    /// `--` shows them
    #[arg(last = true)]
    arguments: Vec<String>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Demo {
    /// One node: redis-cli, redis-benchmark and YCSB A to F against it
    Node,
    /// Data types: a leaderboard, sessions, a job queue and an auction, driven by redis-py
    Types,
    /// Durability: kill -9 under load in each mode of appendfsync, every key audited
    Durable,
    /// Lattice keyspaces: a cart, comments and a counter, each changed at two replicas at once
    Merge,
    /// A cluster: nodes join, drain and are killed under clients that remember everything
    Elastic,
    /// A cluster: disks that are full or hang, nodes that are cut off, killed, emptied or drained, under transactions,
    /// counters and lattice writes
    Faults,
    /// A bank at three nodes: transfers, purchases by card and audits in transactions over nodes, while nodes are killed,
    /// cut off, full, stopped, added or drained
    Bank,
    /// A keyspace for each of the ten levels at three nodes: what two clients of each saw while a node was killed, and what
    /// `eventual` showed
    Levels,
}

/// Builds the release binaries and passes the arguments on.
pub(crate) fn bench(command: &str, pass: &PassThrough) -> Result<bool> {
    build()?;
    let mut bench = bench_command();
    let status = bench
        .arg(command)
        .args(&pass.arguments)
        .status()
        .context("cannot run rufous-bench")?;
    Ok(status.success())
}

/// Builds the papers' figures, which other builds leave out, and passes the arguments on.
pub(crate) fn figures(pass: &PassThrough) -> Result<bool> {
    build()?;
    let package = ["--package", "rufous-figures", "--features", "measure"];
    process::run(cargo().args(["build", "--release"]).args(package))?;
    let mut figures = Command::new(project::target().join("release/rufous-figures"));
    let status = figures
        .current_dir(project::root())
        .args(&pass.arguments)
        .status()
        .context("cannot run rufous-figures")?;
    Ok(status.success())
}

fn build() -> Result<()> {
    process::run(cargo().args([
        "build",
        "--release",
        "--package",
        "rufous-node",
        "--package",
        "rufous-bench",
    ]))
}

fn bench_command() -> Command {
    let mut command = Command::new(project::target().join("release/rufous-bench"));
    command.current_dir(project::root());
    command
}

pub(crate) fn demo(args: &DemoArgs) -> Result<bool> {
    match args.what {
        Demo::Node => demo_node(args.records),
        Demo::Types => types::run(),
        Demo::Durable => durable::run(&durable::Args {
            rounds: args.rounds,
            keys: args.keys,
        }),
        Demo::Merge => merge::run(),
        Demo::Elastic => elastic(&args.arguments),
        Demo::Faults => network::demo("faults", &args.arguments),
        Demo::Bank => network::demo("bank", &args.arguments),
        Demo::Levels => network::demo("levels", &args.arguments),
    }
}

fn elastic(arguments: &[String]) -> Result<bool> {
    build()?;
    let mut bench = bench_command();
    let status = bench.arg("elastic").args(arguments).status();
    Ok(status.context("cannot run rufous-bench")?.success())
}

fn demo_node(records: u64) -> Result<bool> {
    for tool in ["redis-cli", "redis-benchmark"] {
        ensure!(
            process::which(tool).is_some(),
            "{tool} is missing (Debian: apt-get install redis-tools)"
        );
    }
    println!("1. Build");
    build()?;
    println!("\n2. Start a node");
    let mut node = Node::start(&[])?;
    let port = node.port.to_string();
    println!("\n3. Talk to it as to Redis");
    for (words, expected) in [
        ("ping", "PONG"),
        ("set greeting hello EX 60", "OK"),
        ("append greeting !", "6"),
        ("get greeting", "hello!"),
        ("incrby visits 41", "41"),
        ("incr visits", "42"),
        ("mget greeting visits", "hello!\n42"),
        ("setbit bits 7 1", "0"),
        ("object encoding visits", "int"),
        ("dbsize", "3"),
    ] {
        say(&port, words, expected)?;
    }
    println!("\n4. redis-benchmark, 16 requests at a time");
    process::run(Command::new("redis-benchmark").args([
        "-p",
        &port,
        "-q",
        "-n",
        "200000",
        "-r",
        "100000",
        "-P",
        "16",
        "-t",
        "ping_inline,ping_mbulk,set,get,incr,mset",
    ]))?;
    println!("\n5. YCSB A to F");
    let count = records.to_string();
    let mut ycsb = bench_command();
    ycsb.args([
        "ycsb",
        "--port",
        &port,
        "--records",
        &count,
        "--operations",
        &count,
    ]);
    process::run(&mut ycsb)?;
    println!("\n6. Stop");
    node.stop()?;
    println!("The node drained its connections and ended. Start your own: cargo run --release");
    Ok(true)
}

/// Runs one redis-cli command, shows it, and insists on its answer.
fn say(port: &str, words: &str, expected: &str) -> Result<()> {
    let mut command = Command::new("redis-cli");
    command.args(["-p", port]).args(words.split(' '));
    let reply = process::output(&mut command)?;
    let reply = reply.trim_end();
    println!("> {words}\n{reply}");
    ensure!(
        reply == expected,
        "{words}: expected {expected:?}, got {reply:?}"
    );
    Ok(())
}

/// A release server that ends with this value.
pub(crate) struct Node {
    child: Child,
    pub(crate) port: u16,
    directory: std::path::PathBuf,
}

impl Node {
    /// Without data on disk; `options` are further ones.
    pub(crate) fn start(options: &[&str]) -> Result<Self> {
        let port = free_port()?;
        let directory = project::target().join(format!("demo-{port}"));
        std::fs::create_dir_all(&directory)?;
        let mut command = Command::new(project::server_binary());
        command
            .args(["server", "--port", &port.to_string(), "--dir"])
            .arg(&directory)
            .args(["--appendonly", "no", "--save", ""])
            .args(options)
            .stdin(Stdio::null());
        println!("$ {}", line(&command));
        let child = command.spawn().context("cannot start the server")?;
        let mut node = Self {
            child,
            port,
            directory,
        };
        let deadline = Instant::now() + START_LIMIT;
        while !process::answers_ping("127.0.0.1", port) {
            if let Some(status) = node.child.try_wait()? {
                bail!("the server ended with {status}");
            }
            ensure!(Instant::now() < deadline, "the server does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(node)
    }

    /// Asks the server to end and insists that it does so in good order.
    pub(crate) fn stop(&mut self) -> Result<()> {
        ensure!(
            self.child.try_wait()?.is_none(),
            "the server ended during the demonstration"
        );
        let status = stop(&mut self.child)?;
        ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = stop(&mut self.child);
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
