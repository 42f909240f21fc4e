//! The steps of `cargo xtask test`, in the order in which they run: what others need first, then
//! what fails fastest.

use crate::process::{self, Finished, line, watch};
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
    /// Takes whether this is a full run.
    pub(super) run: fn(bool) -> Result<Verdict>,
}

/// How a step ended, with a note for the table.
#[derive(Debug)]
pub(super) enum Verdict {
    Passed(String),
    Failed(String),
    Skipped(String),
}

impl Verdict {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Passed(_) => "passed",
            Self::Failed(_) => "failed",
            Self::Skipped(_) => "skipped",
        }
    }

    pub(super) fn note(&self) -> &str {
        match self {
            Self::Passed(note) | Self::Failed(note) | Self::Skipped(note) => note,
        }
    }

    fn from(fine: bool, note: impl Into<String>) -> Self {
        if fine {
            Self::Passed(note.into())
        } else {
            Self::Failed(note.into())
        }
    }
}

pub(super) const STEPS: &[Step] = &[
    Step {
        name: "install",
        about: "get the tools that tests need",
        quick: false,
        run: install_tools,
    },
    Step {
        name: "tidy",
        about: "layout and style rules",
        quick: true,
        run: tidiness,
    },
    Step {
        name: "format",
        about: "cargo fmt --check",
        quick: true,
        run: format,
    },
    Step {
        name: "lint",
        about: "cargo clippy, warnings are errors",
        quick: true,
        run: lint,
    },
    Step {
        name: "unit",
        about: "all tests of the workspace, hostile input included",
        quick: true,
        run: unit,
    },
    Step {
        name: "sim",
        about: "seeds in each of the five worlds of the simulator, each twice",
        quick: false,
        run: simulate,
    },
    Step {
        name: "build",
        about: "the release build",
        quick: false,
        run: build,
    },
    Step {
        name: "chart",
        about: "the Helm chart, linted, rendered, and its settings",
        quick: false,
        run: chart_of_helm,
    },
    Step {
        name: "merge",
        about: "programs on two replicas of lattice keyspaces",
        quick: false,
        run: merging,
    },
    Step {
        name: "network",
        about: "a cluster in network namespaces, each kind of fault",
        quick: false,
        run: network_broken,
    },
    Step {
        name: "diff",
        about: "random commands, side by side with redis-server",
        quick: false,
        run: side_by_side,
    },
    Step {
        name: "fuzz",
        about: "the fuzz targets, shortly",
        quick: false,
        run: fuzzing,
    },
    Step {
        name: "deny",
        about: "licences and advisories of dependencies",
        quick: false,
        run: deny,
    },
    Step {
        name: "suites",
        about: "the suites of Redis, redis-py and redis-benchmark",
        quick: false,
        run: suites,
    },
    Step {
        name: "cluster-clients",
        about: "cluster clients of five libraries, while nodes come and go",
        quick: false,
        run: cluster_clients,
    },
];

fn install_tools(_full: bool) -> Result<Verdict> {
    let installed = install::programs()?;
    install::redis_source()?;
    install::redis_py()?;
    let what = if installed.is_empty() {
        "everything was there".to_owned()
    } else {
        installed.join(" ")
    };
    Ok(Verdict::Passed(what))
}

fn tidiness(_full: bool) -> Result<Verdict> {
    Ok(Verdict::from(tidy::run()?, "cargo xtask tidy"))
}

fn format(_full: bool) -> Result<Verdict> {
    let finished = logged("format", process::cargo().args(["fmt", "--all", "--check"]))?;
    Ok(Verdict::from(finished.success(), "cargo fmt --all"))
}

fn lint(_full: bool) -> Result<Verdict> {
    let mut command = process::cargo();
    command.args(["clippy", "--workspace", "--all-targets", "--locked"]);
    command.args(FIGURES);
    if without_etcd().is_none() {
        command.args(FEATURES);
    }
    command.args(["--", "-D", "warnings"]);
    let finished = logged("lint", &mut command)?;
    Ok(Verdict::from(
        finished.success(),
        "cargo clippy --workspace --all-targets",
    ))
}

fn unit(full: bool) -> Result<Verdict> {
    let mut command = process::cargo();
    command.args(["test", "--workspace", "--locked", "--no-fail-fast"]);
    if full {
        command.args(FIGURES);
    }
    let etcd = match without_etcd() {
        None => {
            command.args(FEATURES);
            "etcd's among them".to_owned()
        }
        Some(why) => format!("without etcd's ({why})"),
    };
    let finished = logged("unit", &mut command)?;
    let (passed, failed) = count_tests(&finished.text);
    Ok(Verdict::from(
        finished.success() && passed > 0,
        format!("{passed} tests passed, {failed} failed, {etcd}"),
    ))
}

/// The papers' figures, which builds of the workspace leave out.
const FIGURES: [&str; 2] = ["--features", "rufous-figures/measure"];

/// The client of etcd is built only on request, as it needs `protoc`; here it is wherever its tests
/// can run, so that they need no second build.
const FEATURES: [&str; 2] = ["--features", "rufous-coordinator/etcd,rufous-node/etcd"];

/// Why the feature is left out.
fn without_etcd() -> Option<String> {
    let needed = [
        ("etcd", "etcd-server"),
        ("protoc", "protobuf-compiler"),
        ("openssl", "openssl"),
    ];
    let mut missing = needed
        .into_iter()
        .filter(|(program, _)| process::which(program).is_none());
    let (program, package) = missing.next()?;
    Some(format!("no {program}: apt-get install {package}"))
}

fn simulate(_full: bool) -> Result<Verdict> {
    let nodes = sim::run(&sim::Args::short())?;
    let replicas = sim::run(&sim::Args::short_replicas())?;
    let chains = sim::run(&sim::Args::short_chains())?;
    let cluster = sim::run(&sim::Args::short_cluster())?;
    let gossip = sim::run(&sim::Args::short_gossip())?;
    Ok(Verdict::from(
        nodes && replicas && chains && cluster && gossip,
        "cargo xtask sim --seeds 500 -- --twice, and with --replicas, --chains, --cluster and --gossip",
    ))
}

fn build(_full: bool) -> Result<Verdict> {
    let mut command = process::cargo();
    command.args([
        "build",
        "--release",
        "--locked",
        "--package",
        "rufous-node",
        "--package",
        "rufous-bench",
        "--package",
        "rufous-examples",
    ]);
    let finished = logged("build", &mut command)?;
    Ok(Verdict::from(finished.success(), "cargo build --release"))
}

fn chart_of_helm(full: bool) -> Result<Verdict> {
    if let Err(obstacle) = chart::helm() {
        if !full {
            return Ok(Verdict::Skipped(obstacle));
        }
        install::helm()?;
    }
    Ok(Verdict::from(chart::run()?, "cargo xtask chart"))
}

fn merging(_full: bool) -> Result<Verdict> {
    Ok(Verdict::from(merge::show()?, "cargo xtask demo merge"))
}

fn network_broken(full: bool) -> Result<Verdict> {
    if !full {
        let how = "some minutes more: cargo xtask network, or cargo xtask test --full";
        return Ok(Verdict::Skipped(how.to_owned()));
    }
    if let Some(obstacle) = network::obstacle()? {
        return Ok(Verdict::Skipped(obstacle));
    }
    let fine = network::run(&network::Args::of_check())?;
    Ok(Verdict::from(fine, "cargo xtask network"))
}

fn side_by_side(_full: bool) -> Result<Verdict> {
    if let Some(obstacle) = diff::obstacle() {
        return Ok(Verdict::Skipped(obstacle.to_owned()));
    }
    let fine = diff::run(&diff::Args::short())?;
    Ok(Verdict::from(fine, "cargo xtask diff --rounds 25"))
}

fn fuzzing(full: bool) -> Result<Verdict> {
    if let Some(obstacle) = fuzz::obstacle() {
        return Ok(Verdict::Skipped(obstacle.to_owned()));
    }
    let seconds = if full { 300 } else { 10 };
    let fine = fuzz::run(&fuzz::Args {
        seconds,
        target: None,
    })?;
    Ok(Verdict::from(fine, format!("{seconds} s for each target")))
}

fn deny(full: bool) -> Result<Verdict> {
    if !install::has_cargo_tool("deny") {
        if !full {
            let how =
                "no cargo-deny: cargo install --locked cargo-deny, or cargo xtask test --full";
            return Ok(Verdict::Skipped(how.to_owned()));
        }
        install::cargo_tool("cargo-deny")?;
    }
    let finished = logged("deny", process::cargo().args(["deny", "check"]))?;
    Ok(Verdict::from(finished.success(), "cargo deny check"))
}

fn suites(_full: bool) -> Result<Verdict> {
    let fine = suite::run(&suite::Args::all())?;
    Ok(Verdict::from(fine, "cargo xtask suite all"))
}

fn cluster_clients(_full: bool) -> Result<Verdict> {
    let (fine, skipped) = suite::cluster_clients(&suite::Args::cluster_clients())?;
    Ok(match skipped.is_empty() {
        false if fine => Verdict::Skipped(format!("in part: {}", skipped.join("; "))),
        _ => Verdict::from(fine, "cargo xtask suite cluster-clients"),
    })
}

/// Runs a command, shows its output, and keeps it.
fn logged(name: &str, command: &mut Command) -> Result<Finished> {
    command.env("CARGO_TERM_COLOR", "never");
    println!("$ {}", line(command));
    let finished = watch(command, LIMIT, true)?;
    let log = project::target()
        .join("check-logs")
        .join(format!("{name}.log"));
    std::fs::write(log, &finished.text)?;
    Ok(finished)
}

/// Adds up the `test result:` lines of cargo test.
fn count_tests(text: &str) -> (usize, usize) {
    let mut sums = (0, 0);
    for line in text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("test result: "))
    {
        let number = |name: &str| -> usize {
            let part = line
                .split([';', '.'])
                .find(|part| part.trim().ends_with(name));
            part.and_then(|part| part.split_whitespace().next()?.parse().ok())
                .unwrap_or(0)
        };
        sums.0 += number("passed");
        sums.1 += number("failed");
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_all_test_binaries_are_added_up() {
        let text = "running 3 tests\ntest result: ok. 3 passed; 0 failed; 1 ignored; 0 measured\n\
            test result: FAILED. 10 passed; 2 failed; 0 ignored\ntest a ... ok\n";
        assert_eq!(count_tests(text), (13, 2));
        assert_eq!(count_tests(""), (0, 0));
    }
}
