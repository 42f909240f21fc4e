//! `cargo xtask suite`: runs the suites that others wrote against a server and compares the outcome
//! with what was reached before.
//!
//! `docs/compatibility` holds what belongs to this repository: which units run and why, which tests
//! are left out and why, and the recorded results, which may only rise. The suites themselves are
//! downloaded below the target directory and never committed.
//!
//! `server` starts what is tested, `skips` reads the lists of left-out tests, `tcl`, `redis_py`,
//! `redis_benchmark` and `apps` run one suite each, `clients` tries cluster clients (`libraries`) on a
//! `cluster`, `record` keeps results and writes the table.

mod apps;
mod clients;
mod cluster;
mod libraries;
mod record;
mod redis_benchmark;
mod redis_py;
pub(crate) mod server;
mod skips;
mod tcl;

use crate::process::{cargo, run as run_command};
use crate::project;
use anyhow::{Result, bail, ensure};
use record::Row;
use server::Target;
pub(crate) use skips::glob;
use std::path::PathBuf;

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Which {
    /// Redis's own suite, from Debian's source package, one fresh server per unit
    Tcl,
    /// The suite of redis-py, from its source distribution
    RedisPy,
    /// The tests of redis-benchmark that the implemented commands cover
    RedisBenchmark,
    /// Applications that do a real job: RQ, Django's cache, Celery, queues on lists
    Apps,
    /// All of these
    All,
    /// Cluster clients of five libraries while nodes join, drain and are killed (not among `all`)
    ClusterClients,
}

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    cargo xtask suite tcl\n  \
    cargo xtask suite tcl --unit unit/expire --unit unit/scan\n  \
    cargo xtask suite redis-py --reference        how a Redis with the same commands does\n  \
    cargo xtask suite tcl --server 'redis-server --port {port} --dir {dir}'\n  \
    cargo xtask suite cluster-clients --seconds 30\n  \
    cargo xtask suite cluster-clients --server target/debug/rufous\n  \
    cargo xtask suite all --record                keep the results in docs/compatibility")]
pub(crate) struct Args {
    /// Which suite to run
    suite: Which,
    /// Use a server that is running already (HOST:PORT); its data will be lost
    #[arg(long, conflicts_with_all = ["server", "reference"])]
    addr: Option<String>,
    /// Start this command line instead of the release build; {port} and {dir} are filled in
    #[arg(long, conflicts_with = "reference")]
    server: Option<String>,
    /// Test redis-server with all commands removed that Rufous does not have: the bar
    #[arg(long)]
    reference: bool,
    /// cluster-clients: how long the clients go on after each thing that happens to nodes
    #[arg(long, default_value_t = SECONDS)]
    seconds: u64,
    /// Only these units of the Tcl suite, listed or not
    #[arg(long)]
    unit: Vec<String>,
    /// Do not build the server first
    #[arg(long)]
    no_build: bool,
    /// Show the suite's output while it runs
    #[arg(long, short)]
    verbose: bool,
    /// Keep the results in docs/compatibility; refuses to lower them
    #[arg(long)]
    record: bool,
}

/// Where nothing else is said.
const SECONDS: u64 = 4;

impl Args {
    /// The cluster clients, likewise.
    pub(crate) fn cluster_clients() -> Self {
        Self {
            suite: Which::ClusterClients,
            ..Self::all()
        }
    }

    /// All suites against [`project::server_binary`], which must be there already.
    pub(crate) fn all() -> Self {
        Self {
            suite: Which::All,
            addr: None,
            server: None,
            reference: false,
            seconds: SECONDS,
            unit: Vec::new(),
            no_build: true,
            verbose: false,
            record: false,
        }
    }
}

/// What a suite needs to know to run.
struct Run<'a> {
    target: &'a Target,
    verbose: bool,
    /// Where full outputs are kept.
    logs: PathBuf,
}

/// What a suite found.
struct Outcome {
    rows: Vec<Row>,
    /// Failed tests by name with their messages, dead servers, entries that skip nothing.
    complaints: Vec<String>,
}

/// What suites counted, and failed tests, dead servers and regressions.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) ok: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    let tally = if args.suite == Which::ClusterClients {
        cluster_clients(args)?.0
    } else {
        run_counted(args)?
    };
    Ok(tally.failed == 0)
}

pub(crate) fn run_counted(args: &Args) -> Result<Tally> {
    let target = target(args)?;
    let (context, is_ours) = prepare(args, &target)?;
    let mut outcomes = Vec::new();
    for (which, name) in [
        (Which::Tcl, "tcl"),
        (Which::RedisPy, "redis-py"),
        (Which::RedisBenchmark, "redis-benchmark"),
        (Which::Apps, "apps"),
    ] {
        if args.suite != which && args.suite != Which::All {
            continue;
        }
        let outcome = match which {
            Which::Tcl => tcl::run(&context, &args.unit)?,
            Which::RedisPy => redis_py::run(&context)?,
            Which::RedisBenchmark => redis_benchmark::run(&context)?,
            Which::Apps | Which::All | Which::ClusterClients => apps::run(&context)?,
        };
        outcomes.push((name, outcome));
    }
    conclude(args, is_ours, outcomes)
}

/// Builds what is tested; whether that is the release build.
fn prepare<'a>(args: &Args, target: &'a Target) -> Result<(Run<'a>, bool)> {
    let is_ours = matches!(target, Target::Rufous);
    ensure!(
        is_ours || !args.record,
        "only results of the release build are recorded"
    );
    if is_ours && !args.no_build {
        run_command(cargo().args(["build", "--release", "--package", "rufous-node"]))?;
    }
    let logs = project::target().join("suite-logs");
    std::fs::create_dir_all(&logs)?;
    let run = Run {
        target,
        verbose: args.verbose,
        logs,
    };
    Ok((run, is_ours))
}

/// Runs the cluster clients: the counts, and the libraries that cannot be installed here, with the
/// reasons.
pub(crate) fn cluster_clients(args: &Args) -> Result<(Tally, Vec<String>)> {
    let target = target(args)?;
    let (context, is_ours) = prepare(args, &target)?;
    let program = match &target {
        Target::Rufous => project::server_binary(),
        Target::Command(program) => PathBuf::from(program),
        Target::Reference | Target::Running { .. } => {
            bail!("cluster-clients starts a cluster of Rufous: --server takes its program")
        }
    };
    let (outcome, skipped) = clients::run(&context, &program, args.seconds)?;
    for skipped in &skipped {
        println!("skipped: {skipped}");
    }
    let tally = conclude(args, is_ours, vec![("cluster-clients", outcome)])?;
    Ok((tally, skipped))
}

fn target(args: &Args) -> Result<Target> {
    if let Some(address) = &args.addr {
        return Target::running(address);
    }
    Ok(match &args.server {
        Some(line) => Target::Command(line.clone()),
        None if args.reference => Target::Reference,
        None => Target::Rufous,
    })
}

fn conclude(args: &Args, is_ours: bool, outcomes: Vec<(&'static str, Outcome)>) -> Result<Tally> {
    let mut recorded = record::Results::read()?;
    let mut tally = Tally::default();
    for (name, mut outcome) in outcomes {
        if is_ours {
            outcome
                .complaints
                .extend(recorded.regressions(name, &outcome.rows));
        }
        println!("\n{}", record::table(&outcome.rows));
        for complaint in &outcome.complaints {
            println!("{complaint}");
        }
        let verdict = if outcome.complaints.is_empty() {
            "ok"
        } else {
            "FAILED"
        };
        println!("suite {name}: {verdict}, {}", record::totals(&outcome.rows));
        let counts = record::tally(&outcome.rows);
        tally.ok += counts.ok;
        tally.skipped += counts.skipped;
        tally.failed += counts.failed.max(outcome.complaints.len());
        if args.record {
            recorded.update(name, outcome.rows);
        }
    }
    if args.record {
        recorded.write()?;
        println!("recorded in docs/compatibility");
    }
    Ok(tally)
}
