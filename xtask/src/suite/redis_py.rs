//! The suite of redis-py, the Python client, from its source distribution.

use super::record::Row;
use super::skips::{self, glob};
use super::tcl::suites;
use super::{Outcome, Run};
use crate::install::{self, RedisPy};
use crate::process::{line, watch};
use crate::project;
use anyhow::{Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(900);

/// The files whose tests concern a single plain server.
const FILES: [&str; 10] = [
    "commands",
    "pipeline",
    "pubsub",
    "lock",
    "encoding",
    "connection_pool",
    "multiprocessing",
    "monitor",
    "scripting",
    "function",
];
const MARKS: &str = "not redismod and not ssl and not onlycluster and not cp_integration";

/// The counts of pytest's last line, and what it says about tests that did not pass.
#[derive(Default, Debug, PartialEq, Eq)]
struct Report {
    passed: usize,
    failed: usize,
    skipped: usize,
    failures: Vec<String>,
}

pub(super) fn run(run: &Run) -> Result<Outcome> {
    let suite = install::redis_py()?;
    let skips = skips::read(&project::root().join("docs/compatibility/redis-py-skip.txt"))?;
    let mut server = run.target.start(&run.logs.join("redis-py-server.log"))?;
    let url = format!("redis://{}:{}/0", server.host, server.port);
    let listing = collect(run, &suite, &url)?;
    let tests: Vec<&str> = tests_in(&listing).collect();
    let mut complaints = Vec::new();
    for skip in &skips {
        if !tests.iter().any(|test| glob(&skip.entry, test)) {
            complaints.push(format!(
                "redis-py-skip.txt names tests that are not there: {}",
                skip.entry
            ));
        }
    }
    // Named one by one: pytest leaves out whatever begins like a test that it is to leave out.
    let (left_out, chosen): (Vec<&str>, Vec<&str>) = tests
        .iter()
        .partition(|test| skips.iter().any(|skip| glob(&skip.entry, test)));
    let arguments = run.logs.join("redis-py-tests.txt");
    fs::write(&arguments, lines(&chosen))?;
    let mut command = pytest(&suite, &url);
    command
        .args(["-rfE", "--tb=line"])
        .arg(format!("@{}", arguments.display()));
    let finished = watch(&mut command, LIMIT, run.verbose)?;
    let log = run.logs.join("redis-py.log");
    fs::write(&log, format!("{}\n{}", line(&command), finished.text))?;
    let report = parse(&finished.text);
    complaints.extend(
        report
            .failures
            .iter()
            .map(|failure| format!("redis-py: {failure}")),
    );
    if let Some(end) = server.ended() {
        complaints.push(format!("redis-py: the server {end}"));
    }
    if finished.status.is_none() || report.passed == 0 {
        complaints.push(format!(
            "redis-py: the run broke off: see {}",
            log.display()
        ));
    }
    let skipped = report.skipped + left_out.len();
    let row = Row {
        name: "redis-py".to_owned(),
        ok: report.passed,
        failed: report.failed,
        skipped,
        reference: Some(suites()?.redis_py.reference),
    };
    Ok(Outcome {
        rows: vec![row],
        complaints,
    })
}

/// What pytest says when asked for its tests.
fn collect(run: &Run, suite: &RedisPy, url: &str) -> Result<String> {
    let mut command = pytest(suite, url);
    let files = FILES.iter().map(|name| format!("tests/test_{name}.py"));
    command
        .arg("--collect-only")
        .args(files.filter(|file| present(suite, file)));
    let listing = watch(&mut command, LIMIT, false)?.text;
    let log = run.logs.join("redis-py-collect.log");
    fs::write(&log, &listing)?;
    ensure!(
        tests_in(&listing).next().is_some(),
        "pytest finds no tests: see {}",
        log.display()
    );
    Ok(listing)
}

fn tests_in(listing: &str) -> impl Iterator<Item = &str> {
    let is_test = |line: &&str| line.starts_with("tests/") && line.contains("::");
    listing.lines().filter(is_test)
}

fn pytest(suite: &RedisPy, url: &str) -> Command {
    let mut command = Command::new(&suite.python);
    command
        .current_dir(&suite.source)
        .env("COLUMNS", "400")
        .env("TERM", "dumb");
    command.args([
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--timeout",
        "30",
        "--redis-url",
        url,
        "-m",
        MARKS,
    ]);
    command
}

fn present(suite: &RedisPy, file: &str) -> bool {
    suite.source.join(Path::new(file)).is_file()
}

/// pytest reads arguments from a file, one per line.
fn lines(tests: &[&str]) -> String {
    tests.iter().map(|test| format!("{test}\n")).collect()
}

fn parse(text: &str) -> Report {
    let mut report = Report::default();
    for line in text.lines() {
        if line.starts_with("FAILED ") || line.starts_with("ERROR tests/") {
            report.failures.push(line.chars().take(300).collect());
        }
    }
    let last = text
        .lines()
        .rev()
        .find(|line| line.contains(" in ") && (line.contains("passed") || line.contains("failed")));
    let words: Vec<&str> = last
        .unwrap_or_default()
        .split([' ', ','])
        .filter(|word| !word.is_empty())
        .collect();
    for pair in words.windows(2) {
        let Ok(count) = pair[0].parse::<usize>() else {
            continue;
        };
        match pair[1] {
            "passed" => report.passed = count,
            "failed" | "error" | "errors" => report.failed += count,
            "skipped" => report.skipped = count,
            _ => {}
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_counted_and_failures_are_named() {
        let text = "....F..\nFAILED tests/test_commands.py::T::test_x - assert 1 == 2\n\
            ERROR tests/test_lock.py::T::test_y\n2 failed, 7 passed, 3 skipped, 12 deselected, 1 error in 0.50s\n";
        let report = parse(text);
        assert_eq!((report.passed, report.failed, report.skipped), (7, 3, 3));
        assert_eq!(report.failures.len(), 2);
    }

    #[test]
    fn tests_are_told_from_what_else_pytest_prints() {
        let text = "tests/test_a.py::T::test_x[1]\ntests/test_b.py: 3\n\n7 tests collected in 1s\n";
        let tests: Vec<&str> = tests_in(text).collect();
        assert_eq!(tests, ["tests/test_a.py::T::test_x[1]"]);
        assert_eq!(lines(&tests), "tests/test_a.py::T::test_x[1]\n");
    }

    #[test]
    fn without_a_last_line_nothing_passed() {
        assert_eq!(parse("....F\n").passed, 0);
    }
}
