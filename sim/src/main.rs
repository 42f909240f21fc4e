//! The command line of the simulator: seeds in a row, or one with its trace.
#![forbid(unsafe_code)]

mod chains_runs;
mod cluster_runs;
mod gossip_runs;
mod replicas_runs;

use clap::Parser;
use rufous_sim::faults::Fault;
use rufous_sim::plan::Limits;
use rufous_sim::probes::Probes;
use rufous_sim::runs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Runs real workers in a simulated world, one seed after the other.
#[derive(Parser)]
#[command(max_term_width = 100)]
struct Args {
    /// How many seeds (default: until stopped)
    #[arg(long)]
    seeds: Option<u64>,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Only this seed
    #[arg(long)]
    seed: Option<u64>,
    /// Print what happens, line by line
    #[arg(short, long)]
    verbose: bool,
    /// Write what happens to a file
    #[arg(long)]
    trace: Option<PathBuf>,
    /// Run each seed twice, and compare
    #[arg(long)]
    twice: bool,
    /// Go on after a seed that failed
    #[arg(long)]
    keep_going: bool,
    /// Make something wrong on purpose
    #[arg(long)]
    fault: Option<String>,
    /// Seeds that are run before the others, one in a line
    #[arg(long)]
    replay: Option<PathBuf>,
    /// The world of replicas instead of that of nodes
    #[arg(long)]
    replicas: bool,
    /// The world of chains instead
    #[arg(long, conflicts_with_all = ["replicas", "lattice"])]
    chains: bool,
    /// The world of whole nodes of a cluster instead
    #[arg(long, conflicts_with_all = ["replicas", "lattice", "chains"])]
    cluster: bool,
    /// Of clusters: so many nodes, with one worker each, and little that goes on
    #[arg(long, requires = "cluster")]
    nodes: Option<usize>,
    /// The world of nodes that share lattice keyspaces instead
    #[arg(long, conflicts_with_all = ["replicas", "lattice", "chains", "cluster"])]
    gossip: bool,
    /// Of replicas: all clients have this level
    #[arg(long, requires = "replicas")]
    mode: Option<String>,
    /// All seeds have lattice keyspaces
    #[arg(long, conflicts_with = "replicas")]
    lattice: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    runs::keep_panics_quiet();
    match run(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<bool, String> {
    if args.replicas {
        return replicas_runs::run(args);
    }
    if args.cluster {
        return cluster_runs::run(args);
    }
    if args.chains {
        return chains_runs::run(args);
    }
    if args.gossip {
        return gossip_runs::run(args);
    }
    let fault = match &args.fault {
        None => Fault::None,
        Some(name) => Fault::named(name).ok_or_else(|| {
            let names: Vec<_> = Fault::ALL.iter().map(|(_, name)| *name).collect();
            format!("no such fault; there are: {}", names.join(", "))
        })?,
    };
    if let Some(seed) = args.seed {
        return one(args, seed, fault);
    }
    many(args, fault)
}

fn limits(args: &Args) -> Limits {
    Limits {
        lattice: args.lattice.then_some(true),
        ..Limits::default()
    }
}

/// One seed, with its trace.
fn one(args: &Args, seed: u64, fault: Fault) -> Result<bool, String> {
    let report = runs::run(seed, &limits(args), fault, true);
    print!("{}", report.plan);
    let text = report.lines.join("\n") + "\n";
    if args.verbose {
        print!("{text}");
    }
    if let Some(path) = &args.trace {
        std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    println!(
        "{} events, {} operations, trace {:016x}",
        report.events, report.operations, report.hash
    );
    match &report.failure {
        None => println!("seed {seed} passed"),
        Some(failure) => println!("seed {seed} FAILED: {failure}"),
    }
    Ok(report.failure.is_none())
}

/// What many seeds came to.
#[derive(Default)]
struct Sum {
    seeds: u64,
    failed: Vec<u64>,
    operations: u64,
    events: u64,
    unsure: u64,
    probes: Probes,
}

/// A run of so many seeds has to reach every probe.
const MANY: u64 = 1_000;

fn many(args: &Args, fault: Fault) -> Result<bool, String> {
    let started = Instant::now();
    let mut sum = Sum::default();
    let first = replayed(args)?;
    let last = args.seeds.map_or(u64::MAX, |n| args.from.saturating_add(n));
    let mut shown = started;
    for seed in first.into_iter().chain(args.from..last) {
        let fine = next(args, seed, fault, &mut sum);
        if shown.elapsed().as_secs() >= 5 {
            shown = Instant::now();
            progress(&sum, started);
        }
        if !fine && !args.keep_going {
            break;
        }
    }
    progress(&sum, started);
    println!("rare states that were reached:\n{}", sum.probes);
    let missing: Vec<_> = sum.probes.missing().collect();
    if args.seeds.is_some_and(|n| n >= MANY) && !missing.is_empty() && fault == Fault::None {
        println!("never reached: {missing:?}");
        return Ok(false);
    }
    if !sum.failed.is_empty() {
        println!("failed seeds: {:?}", sum.failed);
    }
    Ok(sum.failed.is_empty())
}

fn next(args: &Args, seed: u64, fault: Fault, sum: &mut Sum) -> bool {
    let report = runs::run(seed, &limits(args), fault, false);
    sum.seeds += 1;
    sum.operations += report.operations;
    sum.events += report.events;
    sum.unsure += report.unsure;
    sum.probes.merge(&report.probes);
    let mut failure = report.failure;
    if args.twice {
        let again = runs::run(seed, &limits(args), fault, false);
        if again.hash != report.hash {
            failure.get_or_insert(format!(
                "the trace differs: {:016x}, then {:016x}",
                report.hash, again.hash
            ));
        }
    }
    let Some(failure) = failure else { return true };
    println!("seed {seed} FAILED: {failure}");
    let planted = args
        .fault
        .as_ref()
        .map_or(String::new(), |f| format!(" --fault {f}"));
    println!("replay with: cargo xtask sim --seed {seed}{planted} --verbose\n");
    sum.failed.push(seed);
    false
}

fn progress(sum: &Sum, started: Instant) {
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{} seeds in {seconds:.0} s ({:.0} per second), {} failed, {} operations, {} events, {} searches given up",
        sum.seeds,
        sum.seeds as f64 / seconds.max(0.001),
        sum.failed.len(),
        sum.operations,
        sum.events,
        sum.unsure
    );
}

/// Seeds of the file given with `--replay`.
fn replayed(args: &Args) -> Result<Vec<u64>, String> {
    let Some(path) = &args.replay else {
        return Ok(Vec::new());
    };
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let seeds = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty());
    seeds
        .map(|seed| seed.parse().map_err(|_| format!("'{seed}' is no seed")))
        .collect()
}
