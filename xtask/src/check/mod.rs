//! `cargo xtask test`: installs what tests need and runs all of them, step by step, with a table at
//! the end. What a machine cannot do is skipped and says why; a skipped step counts neither as
//! passed nor as failed.

mod steps;

use crate::project;
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};
use steps::{STEPS, Step, Verdict};

#[derive(clap::Args)]
#[command(after_help = "Exit status 0 when no step failed. Logs are kept in target/check-logs.")]
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
    verdict: Verdict,
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
    let mut lines: Vec<Line> = Vec::new();
    for step in wanted {
        println!("\n==> {}: {}", step.name, step.about);
        let begun = Instant::now();
        let verdict = match (step.run)(args.full) {
            Ok(verdict) => verdict,
            Err(error) => Verdict::Failed(format!("{error:#}")),
        };
        println!("==> {}: {}", step.name, verdict.word());
        lines.push(Line {
            name: step.name,
            verdict,
            took: begun.elapsed(),
        });
    }
    let (table, summary, fine) = summarise(&lines);
    println!("\n{table}\n{summary}");
    Ok(fine)
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

/// The table, the line that counts, and whether nothing failed.
fn summarise(lines: &[Line]) -> (String, String, bool) {
    let mut table = String::from("step             result    seconds  what\n");
    for line in lines {
        let (word, seconds, note) = (
            line.verdict.word(),
            line.took.as_secs(),
            line.verdict.note(),
        );
        table.push_str(&format!("{:16} {word:9} {seconds:7}  {note}\n", line.name));
    }
    let count = |word: &str| {
        lines
            .iter()
            .filter(|line| line.verdict.word() == word)
            .count()
    };
    let (passed, failed, skipped) = (count("passed"), count("failed"), count("skipped"));
    if skipped > 0 {
        table.push_str(&format!("\n{skipped} skipped, for the reasons above\n"));
    }
    // A run in which nothing passed has shown nothing.
    (
        table,
        format!("{passed} passed, {failed} failed"),
        failed == 0 && passed > 0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(verdict: Verdict) -> Line {
        Line {
            name: "x",
            verdict,
            took: Duration::from_secs(1),
        }
    }

    #[test]
    fn skipped_steps_count_neither_way() {
        let lines = [
            line(Verdict::Passed("7 tests".into())),
            line(Verdict::Skipped("no tool".into())),
            line(Verdict::Failed("1 of 3".into())),
        ];
        let (table, summary, fine) = summarise(&lines);
        assert_eq!(summary, "1 passed, 1 failed");
        assert!(!fine);
        assert!(
            table.contains("no tool") && table.contains("1 of 3") && table.contains("1 skipped")
        );
    }

    #[test]
    fn nothing_but_skipped_steps_is_no_success() {
        assert!(!summarise(&[line(Verdict::Skipped("no tool".into()))]).2);
        assert!(summarise(&[line(Verdict::Passed(String::new()))]).2);
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
    }
}
