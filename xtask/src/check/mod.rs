//! `cargo xtask test`: installs what tests need and runs all of them, step by step, with a table at
//! the end. What a machine cannot do is skipped by name, with the reason, and counts neither as passed
//! nor as failed; what is skipped although this command installs what it needs fails the run.

mod lanes;
mod outcome;
mod steps;

use crate::{process, project};
use anyhow::{Result, anyhow, ensure};
use outcome::Outcome;
use std::time::{Duration, Instant};
use steps::{STEPS, Step};

#[derive(clap::Args)]
#[command(
    after_help = "The last line counts tests: N passed, N failed, N skipped. What is skipped is named above it.\n\
    Exit status 0 when nothing failed and nothing was skipped that this command installs.\n\
    Logs are kept in target/check-logs.\n\n\
    Servers are those of the tests' build, whose assertions are on; with --full those of the release build.\n\n\
    Not part of it, or only of --full: the faults of a real network (cargo xtask network), 300 s of fuzzing for\n\
    each target (cargo xtask fuzz), more seeds (cargo xtask sim), the Helm chart, cargo-deny."
)]
pub(crate) struct Args {
    /// Only these steps, by name
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// Formatting, lints, unit tests and tidiness; installs nothing
    #[arg(long)]
    quick: bool,
    /// Also install cargo-deny where it is missing, and fuzz longer
    #[arg(long)]
    full: bool,
    /// List the steps and stop
    #[arg(long)]
    list: bool,
}

/// A step that was gone through.
struct Line {
    name: &'static str,
    outcome: Outcome,
    took: Duration,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    if args.list {
        for step in STEPS {
            println!("{:16} {}", step.name, step.about);
        }
        return Ok(true);
    }
    let wanted = choose(args)?;
    std::fs::create_dir_all(project::target().join("check-logs"))?;
    if !args.full {
        project::run_tested_build();
    }
    let begun = Instant::now();
    let lines = go_through(&wanted, args.full)?;
    let (table, summary, fine) = summarise(&lines, begun.elapsed());
    println!("\n{table}\n{summary}");
    Ok(fine)
}

/// Runs steps one after the other; those that compute beside the others begin with the first of them.
fn go_through(wanted: &[&'static Step], full: bool) -> Result<Vec<Line>> {
    let (beside, others): (Vec<&Step>, Vec<&Step>) = wanted.iter().partition(|step| step.beside);
    let first = wanted.iter().position(|step| step.beside);
    let (before, behind) = others.split_at(first.unwrap_or(others.len()));
    let all = |steps: &[&'static Step]| steps.iter().map(|step| go(step, full)).collect();
    let mut lines: Vec<Line> = all(before);
    std::thread::scope(|threads| {
        let beside = threads.spawn(|| {
            process::yield_to_others();
            all(&beside)
        });
        let behind: Vec<Line> = all(behind);
        let beside = beside.join().map_err(|_| anyhow!("a step panicked"))?;
        lines.extend(beside);
        lines.extend(behind);
        Ok(lines)
    })
}

fn go(step: &Step, full: bool) -> Line {
    let beside = if step.beside {
        ", while others wait"
    } else {
        ""
    };
    println!("\n==> {}: {}{beside}", step.name, step.about);
    let begun = Instant::now();
    let outcome = match (step.run)(full) {
        Ok(outcome) => outcome,
        Err(error) => Outcome::of(false, format!("{error:#}")),
    };
    println!("==> {}: {}", step.name, outcome.word());
    Line {
        name: step.name,
        outcome,
        took: begun.elapsed(),
    }
}

fn choose(args: &Args) -> Result<Vec<&'static Step>> {
    for name in &args.only {
        let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        ensure!(
            known.contains(&name.as_str()),
            "there is no step {name}; there are: {}",
            known.join(", ")
        );
    }
    let wanted = STEPS.iter().filter(|step| {
        if args.only.is_empty() {
            !args.quick || step.quick
        } else {
            args.only.iter().any(|name| name == step.name)
        }
    });
    Ok(wanted.collect())
}

/// The table, the line that counts tests, and whether nothing failed.
fn summarise(lines: &[Line], all: Duration) -> (String, String, bool) {
    let mut table = String::from("step             result    minutes  what\n");
    for line in lines {
        let (word, minutes) = (line.outcome.word(), line.took.as_secs_f64() / 60.0);
        let (name, note) = (line.name, &line.outcome.note);
        table.push_str(&format!("{name:16} {word:9} {minutes:7.1}  {note}\n"));
    }
    let minutes = all.as_secs_f64() / 60.0;
    table.push_str(&format!("{:16} {:9} {minutes:7.1}\n", "together", ""));
    let sum = |of: fn(&Outcome) -> usize| lines.iter().map(|line| of(&line.outcome)).sum::<usize>();
    let (passed, failed) = (sum(|step| step.passed), sum(|step| step.failed));
    let (skipped, missing) = (sum(|step| step.skipped), sum(|step| step.missing));
    if skipped > 0 {
        table.push_str("\nSkipped:\n");
    }
    for line in lines {
        for name in &line.outcome.names {
            table.push_str(&format!("  {}: {name}\n", line.name));
        }
    }
    let failures = lines.iter().flat_map(|line| {
        let failures = line.outcome.failures.iter();
        failures.map(|failure| format!("  {}: {failure}\n", line.name))
    });
    let failures: String = failures.collect();
    if !failures.is_empty() {
        table.push_str(&format!("\nFailed:\n{failures}"));
    }
    if missing > 0 {
        table.push_str(&format!(
            "\n{missing} of the skipped tests need a program that `cargo xtask test --only install` installs: \
             the run fails\n"
        ));
    }
    // A run in which nothing passed has shown nothing.
    (
        table,
        format!("{passed} passed, {failed} failed, {skipped} skipped"),
        failed == 0 && missing == 0 && passed > 0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(outcome: Outcome) -> Line {
        Line {
            name: "x",
            outcome,
            took: Duration::from_secs(90),
        }
    }

    #[test]
    fn skipped_steps_count_neither_as_passed_nor_as_failed() {
        let lines = [
            line(Outcome::of(true, "cargo fmt")),
            line(Outcome::skipped("no helm")),
            line(Outcome::of(false, "1 of 3")),
        ];
        let (table, summary, fine) = summarise(&lines, Duration::from_secs(270));
        assert_eq!(summary, "1 passed, 1 failed, 1 skipped");
        assert!(!fine);
        assert!(table.contains("no helm") && table.contains("1 of 3"));
        assert!(table.contains("1.5  cargo fmt") && table.contains("4.5\n"));
    }

    #[test]
    fn a_run_fails_where_nothing_passed_or_something_installable_is_missing() {
        let sums_up = |lines: &[Line]| summarise(lines, Duration::ZERO);
        assert!(!sums_up(&[line(Outcome::skipped("no helm"))]).2);
        assert!(sums_up(&[line(Outcome::of(true, ""))]).2);
        let lines = [
            line(Outcome::of(true, "")),
            line(Outcome::missing("no redis-server")),
        ];
        let (table, summary, fine) = sums_up(&lines);
        assert!(!fine && table.contains("the run fails"));
        assert_eq!(summary, "1 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn steps_are_chosen_by_name_or_speed() {
        let args = |only: &[&str], quick| Args {
            only: only.iter().map(|name| (*name).to_owned()).collect(),
            quick,
            full: false,
            list: false,
        };
        assert_eq!(choose(&args(&[], false)).unwrap().len(), STEPS.len());
        assert!(choose(&args(&[], true)).unwrap().len() < STEPS.len());
        assert_eq!(choose(&args(&["tidy"], true)).unwrap()[0].name, "tidy");
        assert!(choose(&args(&["no-such-step"], false)).is_err());
    }

    #[test]
    fn installing_comes_before_what_needs_it() {
        let position = |name: &str| STEPS.iter().position(|step| step.name == name).unwrap();
        assert_eq!(position("install"), 0);
        assert!(position("build") < position("suites"));
        // What computes beside others needs what was compiled.
        let first = STEPS.iter().position(|step| step.beside).unwrap();
        assert!(position("compile") < first && position("build") < first);
    }
}
