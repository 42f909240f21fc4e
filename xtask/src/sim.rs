//! `cargo xtask sim`: builds the simulator and runs seeds of a scenario, those that failed once first.

use crate::{process, project};
use anyhow::{Context, Result, anyhow};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

/// The scenarios, and how many seeds of each the whole test run takes: two minutes at most. Saved seeds are among the tests of
/// the simulator.
const SHORT: [(&str, u64); 4] = [
    ("node", 500),
    ("chains", 300),
    ("cluster", 30),
    ("gossip", 900),
];

/// No scenario may hold up the test run for longer.
const LIMIT: Duration = Duration::from_secs(900);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// What is simulated: node, chains, cluster or gossip
    #[arg(long, default_value = "node")]
    pub(crate) scenario: String,
    /// Run so many seeds (default: until stopped)
    #[arg(long)]
    pub(crate) seeds: Option<u64>,
    /// Run this seed only, and print its plan
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Do not build the simulator first
    #[arg(long)]
    pub(crate) no_build: bool,
    /// Do not run seeds that failed once before the others
    #[arg(long)]
    pub(crate) no_saved: bool,
    /// Further arguments of rufous-sim, such as --verbose, --trace FILE or --from N
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<String>,
}

/// What the test run does: seeds of each scenario, one of four twice, so that a trace that differs is found. A scenario
/// takes one core: two run at a time. Answers what failed.
pub(crate) fn run_short() -> Result<Vec<String>> {
    let left = Mutex::new(SHORT.iter());
    let lane = || -> Result<Vec<String>> {
        let mut failures = Vec::new();
        loop {
            let next = left.lock().ok().and_then(|mut left| left.next());
            let Some(&(scenario, seeds)) = next else {
                return Ok(failures);
            };
            let mut sim = simulator(&Args {
                scenario: scenario.into(),
                seeds: Some(seeds),
                seed: None,
                no_build: true,
                no_saved: true,
                arguments: vec!["--twice".into(), "4".into()],
            });
            let ended = process::watch(&mut sim, LIMIT, true)?;
            if !ended.success() {
                let verdict: Vec<&str> = ended.text.lines().filter(|line| tells(line)).collect();
                failures.push(format!("{scenario}: {}", verdict.join(" | ")));
            }
        }
    };
    std::thread::scope(|threads| {
        let other = threads.spawn(lane);
        let mut failures = lane()?;
        let others = other.join().map_err(|_| anyhow!("a thread panicked"))?;
        failures.extend(others?);
        Ok(failures)
    })
}

/// Whether a line of the simulator says why it failed.
fn tells(line: &str) -> bool {
    let told = ["error:", "never reached:", "saved seeds that"];
    line.contains(" FAILED: ")
        || line.contains("given up; at most")
        || told.iter().any(|told| line.starts_with(told))
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    // The profile of tests: assertions of the node are on, and it is optimised enough.
    if !args.no_build {
        process::run(process::cargo().args(["build", "--package", "rufous-sim"]))?;
    }
    let status = simulator(args).status();
    Ok(status.context("cannot run rufous-sim")?.success())
}

fn simulator(args: &Args) -> Command {
    let mut sim = Command::new(project::target().join("debug/rufous-sim"));
    sim.current_dir(project::root());
    sim.args(["--scenario", &args.scenario]);
    match args.seed {
        Some(seed) => sim.args(["--seed", &seed.to_string()]),
        None if args.no_saved => &mut sim,
        None => sim.args(["--replay", "sim/seeds.txt"]),
    };
    if let Some(seeds) = args.seeds {
        sim.args(["--seeds", &seeds.to_string()]);
    }
    sim.args(&args.arguments);
    sim
}
