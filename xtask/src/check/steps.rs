//! The steps of `cargo xtask test`, in the order in which they run: what others need first, then
//! what fails fastest.

use super::lanes;
use super::outcome::{Outcome, slowest};
use crate::process::{self, Finished, line, tested_features, watch};
use crate::{chart, diff, fuzz, install, merge, network, project, sim, suite, tidy};
use anyhow::Result;
use std::process::Command;
use std::time::Duration;

/// No single step may hold up a run for longer.
const LIMIT: Duration = Duration::from_secs(1800);

pub(super) struct Step {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Part of `--quick`.
    pub(super) quick: bool,
    /// It computes, while the steps behind it wait for servers and clients.
    pub(super) beside: bool,
    pub(super) run: Run,
}

/// Takes whether this is a full run.
type Run = fn(bool) -> Result<Outcome>;

const fn quick(name: &'static str, about: &'static str, run: Run) -> Step {
    Step {
        name,
        about,
        quick: true,
        beside: false,
        run,
    }
}

const fn slow(name: &'static str, about: &'static str, run: Run) -> Step {
    let step = quick(name, about, run);
    Step {
        quick: false,
        ..step
    }
}

const fn beside(name: &'static str, about: &'static str, run: Run) -> Step {
    let step = slow(name, about, run);
    Step {
        beside: true,
        ..step
    }
}

pub(super) const STEPS: [Step; 16] = [
    slow("install", "get the tools that tests need", install_tools),
    quick("tidy", "layout and style rules", tidiness),
    quick("format", "cargo fmt --check", format),
    quick("lint", "cargo clippy, warnings are errors", lint),
    quick("compile", "all tests of the workspace, compiled", compile),
    quick(
        "unit",
        "all tests of the workspace, hostile input included",
        unit,
    ),
    slow(
        "build",
        "the programs that the steps behind this one run",
        build,
    ),
    beside(
        "sim",
        "seeds of each scenario of the simulator, one of four twice",
        simulate,
    ),
    beside("fuzz", "the fuzz targets, shortly", fuzzing),
    slow(
        "chart",
        "the Helm chart, linted, rendered, and its settings",
        chart_of_helm,
    ),
    slow(
        "merge",
        "programs on two replicas of lattice keyspaces",
        merging,
    ),
    slow(
        "network",
        "a cluster in network namespaces, each kind of fault",
        network_broken,
    ),
    slow(
        "diff",
        "random commands, side by side with redis-server",
        side_by_side,
    ),
    slow("deny", "licences and advisories of dependencies", deny),
    slow(
        "suites",
        "the suites of Redis, redis-py and redis-benchmark",
        suites,
    ),
    slow(
        "cluster-clients",
        "cluster clients of five libraries, while nodes come and go",
        cluster_clients,
    ),
];

fn install_tools(_full: bool) -> Result<Outcome> {
    let installed = install::programs()?;
    install::redis_source()?;
    install::redis_py()?;
    let what = if installed.is_empty() {
        "everything was there".to_owned()
    } else {
        installed.join(" ")
    };
    Ok(Outcome::of(true, what))
}

fn tidiness(_full: bool) -> Result<Outcome> {
    Ok(Outcome::of(tidy::run()?, "cargo xtask tidy"))
}

fn format(_full: bool) -> Result<Outcome> {
    let finished = logged("format", process::cargo().args(["fmt", "--all", "--check"]))?;
    Ok(Outcome::ended(&finished, LIMIT, "cargo fmt --all"))
}

fn lint(_full: bool) -> Result<Outcome> {
    let mut command = process::cargo();
    command.args(["clippy", "--workspace", "--all-targets", "--locked"]);
    command.args(FIGURES);
    command.args(tested_features());
    command.args(["--", "-D", "warnings"]);
    let finished = logged("lint", &mut command)?;
    Ok(Outcome::ended(
        &finished,
        LIMIT,
        "cargo clippy --workspace --all-targets",
    ))
}

/// Compiles the tests, so that the limit of the step that runs them holds for running alone.
fn compile(full: bool) -> Result<Outcome> {
    let mut command = tests(full);
    let finished = logged("compile", command.arg("--no-run"))?;
    Ok(Outcome::ended(
        &finished,
        LIMIT,
        "cargo test --workspace --no-run",
    ))
}

fn unit(full: bool) -> Result<Outcome> {
    let finished = lanes::run(|| tests(full), LIMIT)?;
    keep("unit", &finished)?;
    println!("{}", slowest(&finished.text));
    Ok(Outcome::of_tests(&finished, LIMIT))
}

fn tests(full: bool) -> Command {
    let mut command = process::cargo();
    command.args(["test", "--workspace", "--locked", "--no-fail-fast"]);
    if full {
        command.args(FIGURES);
    }
    command.args(tested_features());
    command
}

/// The papers' figures, which builds of the workspace leave out.
const FIGURES: [&str; 2] = ["--features", "rufous-figures/measure"];

fn simulate(_full: bool) -> Result<Outcome> {
    // With the features of the tests: nothing that the step before compiled is compiled again.
    process::build_tests()?;
    let failures = sim::run_short()?;
    let note = "cargo xtask sim --scenario NAME --seeds N -- --twice 4, for each scenario";
    let outcome = Outcome::of(failures.is_empty(), note);
    Ok(Outcome {
        failures,
        ..outcome
    })
}

/// The steps behind this one run the build of the tests, whose assertions are on: the release build takes minutes more.
fn build(full: bool) -> Result<Outcome> {
    if !full {
        process::build_tests()?;
        return Ok(Outcome::of(
            true,
            "as for the tests: --full runs the release build",
        ));
    }
    let mut command = process::cargo();
    // What the steps behind this one run: each program more is linked as a whole for minutes.
    command.args(["build", "--release", "--locked", "-p", "rufous-node"]);
    let finished = logged("build", &mut command)?;
    Ok(Outcome::ended(&finished, LIMIT, "cargo build --release"))
}

fn chart_of_helm(full: bool) -> Result<Outcome> {
    if let Err(obstacle) = chart::helm() {
        if !full {
            return Ok(Outcome::skipped(&obstacle));
        }
        install::helm()?;
    }
    Ok(Outcome::of(chart::run()?, "cargo xtask chart"))
}

fn merging(_full: bool) -> Result<Outcome> {
    // The programs are those that the tests were built with.
    process::build_tests()?;
    Ok(Outcome::of(merge::show("debug")?, "cargo xtask demo merge"))
}

fn network_broken(full: bool) -> Result<Outcome> {
    if !full {
        let how = "some minutes more: cargo xtask network, or cargo xtask test --full";
        return Ok(Outcome::skipped(how));
    }
    if let Some(obstacle) = network::obstacle()? {
        return Ok(Outcome::skipped(&obstacle));
    }
    let fine = network::run(&network::Args::of_check())?;
    Ok(Outcome::of(fine, "cargo xtask network"))
}

fn side_by_side(_full: bool) -> Result<Outcome> {
    if let Some(obstacle) = diff::obstacle() {
        return Ok(Outcome::missing(obstacle));
    }
    let fine = diff::run(&diff::Args::short())?;
    Ok(Outcome::of(fine, "cargo xtask diff --rounds 25"))
}

fn fuzzing(full: bool) -> Result<Outcome> {
    if let Some(obstacle) = fuzz::obstacle() {
        return Ok(Outcome::skipped(obstacle));
    }
    let seconds = if full { 300 } else { 10 };
    let failures = fuzz::run_counted(&fuzz::Args {
        seconds,
        target: None,
    })?;
    let outcome = Outcome::of(failures.is_empty(), format!("{seconds} s for each target"));
    Ok(Outcome {
        failures,
        ..outcome
    })
}

fn deny(full: bool) -> Result<Outcome> {
    if !install::has_cargo_tool("deny") {
        if !full {
            let how =
                "no cargo-deny: cargo install --locked cargo-deny, or cargo xtask test --full";
            return Ok(Outcome::skipped(how));
        }
        install::cargo_tool("cargo-deny")?;
    }
    let finished = logged("deny", process::cargo().args(["deny", "check"]))?;
    Ok(Outcome::ended(&finished, LIMIT, "cargo deny check"))
}

fn suites(_full: bool) -> Result<Outcome> {
    let tally = suite::run_counted(&suite::Args::all())?;
    Ok(Outcome::of_suite(&tally, "cargo xtask suite all"))
}

fn cluster_clients(_full: bool) -> Result<Outcome> {
    let (tally, skipped) = suite::cluster_clients(&suite::Args::cluster_clients())?;
    let mut outcome = Outcome::of_suite(&tally, "cargo xtask suite cluster-clients");
    for library in &skipped {
        outcome.skip("cluster clients", library, false);
    }
    Ok(outcome)
}

/// Runs a command, shows its output, and keeps it.
fn logged(name: &str, command: &mut Command) -> Result<Finished> {
    command.env("CARGO_TERM_COLOR", "never");
    println!("$ {}", line(command));
    let finished = watch(command, LIMIT, true)?;
    keep(name, &finished)?;
    Ok(finished)
}

/// Keeps the output of a command.
fn keep(name: &str, finished: &Finished) -> Result<()> {
    let logs = project::target().join("check-logs");
    Ok(std::fs::write(
        logs.join(format!("{name}.log")),
        &finished.text,
    )?)
}
