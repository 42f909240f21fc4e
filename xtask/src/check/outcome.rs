//! What a step of `cargo xtask test` found: tests passed, failed and skipped, and which were skipped.

use crate::install;
use crate::process::Finished;
use crate::suite::Tally;
use rufous_skip::{missing_program, read};
use std::time::Duration;

/// What a step found. A step that is no collection of tests counts as one.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
    /// For the table: the command, or why it failed.
    pub(super) note: String,
    /// What was skipped, each with its reason.
    pub(super) names: Vec<String>,
    /// What failed, each with the begin of what it said.
    pub(super) failures: Vec<String>,
    /// How many of them miss what this very command installs.
    pub(super) missing: usize,
}

impl Outcome {
    pub(super) fn of(fine: bool, note: impl Into<String>) -> Self {
        Self {
            passed: usize::from(fine),
            failed: usize::from(!fine),
            note: note.into(),
            ..Self::default()
        }
    }

    /// A command that ended or reached its limit.
    pub(super) fn ended(finished: &Finished, limit: Duration, note: &str) -> Self {
        Self::of(
            finished.success(),
            stopped(finished, limit).unwrap_or_else(|| note.into()),
        )
    }

    /// A step that cannot run, for a reason that this command does not remove.
    pub(super) fn skipped(why: &str) -> Self {
        let mut outcome = Self::default();
        outcome.skip("the whole step", why, false);
        outcome
    }

    /// A step that cannot run because something is missing that this command installs.
    pub(super) fn missing(why: &str) -> Self {
        let mut outcome = Self::default();
        outcome.skip("the whole step", why, true);
        outcome
    }

    pub(super) fn skip(&mut self, name: &str, why: &str, installable: bool) {
        self.skipped += 1;
        self.missing += usize::from(installable);
        self.names.push(format!("{name}: {why}"));
    }

    /// The output of `cargo test`. Tests that reported themselves as skipped were counted as passed
    /// by the harness.
    pub(super) fn of_tests(finished: &Finished, limit: Duration) -> Self {
        let (passed, failed) = (
            total(&finished.text, "passed"),
            total(&finished.text, "failed"),
        );
        let mut outcome = Self {
            failed,
            note: "cargo test --workspace".to_owned(),
            failures: failures_of_tests(&finished.text),
            ..Self::default()
        };
        let skipped = read(&finished.text);
        outcome.passed = passed.saturating_sub(skipped.len());
        for (name, why) in &skipped {
            let installable = missing_program(why).is_some_and(install::installs);
            outcome.skip(name, why, installable);
        }
        for name in ignored(&finished.text) {
            outcome.skip(name, "#[ignore]", false);
        }
        // A run in which no test ran has shown nothing.
        if failed == 0 && (passed == 0 || !finished.success()) {
            outcome.failed = 1;
            outcome.note = "ended without a result: see target/check-logs/unit.log".to_owned();
        }
        if let Some(stopped) = stopped(finished, limit) {
            outcome.note = stopped;
        }
        outcome
    }

    /// Suites of others name what they skip in `docs/compatibility`.
    pub(super) fn of_suite(tally: &Tally, note: &str) -> Self {
        let mut outcome = Self {
            passed: tally.ok,
            failed: tally.failed,
            skipped: tally.skipped,
            note: note.to_owned(),
            ..Self::default()
        };
        if tally.skipped > 0 {
            let skipped = tally.skipped;
            let name = format!("{skipped} tests of {note}: named in docs/compatibility");
            outcome.names.push(name);
        }
        outcome
    }

    pub(super) fn word(&self) -> &'static str {
        if self.failed > 0 || self.missing > 0 {
            "failed"
        } else if self.passed > 0 {
            "passed"
        } else {
            "skipped"
        }
    }
}

/// What the table says of a command that its limit stopped.
fn stopped(finished: &Finished, limit: Duration) -> Option<String> {
    let minutes = limit.as_secs() / 60;
    let note = || format!("stopped: it reached its limit of {minutes} minutes");
    finished.status.is_none().then(note)
}

/// Adds up a count of the `test result:` lines of cargo test.
fn total(text: &str, what: &str) -> usize {
    let results = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("test result: "));
    let counts = results.filter_map(|line| {
        let part = line
            .split([';', '.'])
            .find(|part| part.trim().ends_with(what))?;
        part.split_whitespace().next()?.parse::<usize>().ok()
    });
    counts.sum()
}

fn ignored(text: &str) -> impl Iterator<Item = &str> {
    let tests = text.lines().filter_map(|line| line.strip_prefix("test "));
    tests
        .filter_map(|line| line.split_once(" ... ignored"))
        .map(|(name, _)| name)
}

/// So many characters of what a failed test said are shown at the end of a run.
const SHOWN: usize = 600;

/// The failed tests in the output of `cargo test`, each with the begin of what it wrote.
fn failures_of_tests(text: &str) -> Vec<String> {
    let said = |name: &str| {
        let (_, rest) = text.split_once(&format!("---- {name} stdout ----"))?;
        let ends = [
            "\n---- ",
            "\nstack backtrace:",
            "\nnote: run with",
            "\nfailures:",
        ];
        let end = ends.iter().filter_map(|end| rest.find(end)).min();
        Some(&rest[..end.unwrap_or(rest.len())])
    };
    let failed = text.lines().filter_map(|line| {
        let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
        Some((name, said(name).unwrap_or_default()))
    });
    let failed = failed.map(|(name, said)| {
        let lines: Vec<&str> = said
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        let said: String = lines.join(" | ").chars().take(SHOWN).collect();
        format!("{name}: {said}")
    });
    failed.collect()
}

/// How many test programs `slowest` lists.
const LISTED: usize = 12;

/// A table of the test programs in the output of `cargo test` that took longest. The harness tells no
/// times of single tests.
pub(super) fn slowest(text: &str) -> String {
    let (mut package, mut program, mut times) = ("", String::new(), Vec::new());
    for line in text.lines().map(str::trim_start) {
        if let Some(running) = line.strip_prefix("Running ") {
            let file = running.rsplit('/').next().unwrap_or(running);
            let target = file.rsplit_once('-').map_or(file, |(target, _)| target);
            // Cargo runs the tests inside of a package first and names packages nowhere else.
            program = if running.starts_with("unittests ") {
                package = target;
                target.to_owned()
            } else {
                format!("{package}, tests/{target}")
            };
        } else if let Some(library) = line.strip_prefix("Doc-tests ") {
            program = format!("{library}, documentation");
        } else if let Some((_, time)) = line.split_once("; finished in ") {
            let seconds = time.trim_end_matches('s').parse::<f64>();
            times.extend(seconds.ok().map(|seconds| (seconds, program.clone())));
        }
    }
    times.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut table = String::from("minutes  slowest test programs\n");
    for (seconds, program) in times.iter().take(LISTED) {
        table.push_str(&format!("{:7.2}  {program}\n", seconds / 60.0));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn finished(code: Option<i32>, text: &str) -> Finished {
        Finished {
            status: code.map(|code| ExitStatus::from_raw(code << 8)),
            text: text.to_owned(),
        }
    }

    fn of(code: Option<i32>, text: &str) -> Outcome {
        Outcome::of_tests(&finished(code, text), Duration::from_secs(1800))
    }

    #[test]
    fn results_of_all_test_binaries_are_added_up() {
        let text = "running 3 tests\ntest result: ok. 3 passed; 0 failed; 1 ignored; 0 measured\n\
            test b ... ignored\ntest result: FAILED. 10 passed; 2 failed; 0 ignored\ntest a ... ok\n";
        let outcome = of(Some(101), text);
        assert_eq!(
            (outcome.passed, outcome.failed, outcome.skipped),
            (13, 2, 1)
        );
        assert_eq!(outcome.word(), "failed");
    }

    #[test]
    fn failed_tests_are_named_with_what_they_said() {
        let text = "test a::b ... ok\ntest a::c ... FAILED\ntest d ... FAILED\n\nfailures:\n\n\
            ---- a::c stdout ----\n\nthread 'a::c' (7) panicked at x.rs:3:5:\nseed 5 lost a write\n\
            stack backtrace:\n   0: main\n\n---- d stdout ----\nno\n\nfailures:\n    a::c\n    d\n\n\
            test result: FAILED. 1 passed; 2 failed; 0 ignored\n";
        let outcome = of(Some(101), text);
        let first = "a::c: thread 'a::c' (7) panicked at x.rs:3:5: | seed 5 lost a write";
        assert_eq!(outcome.failures, [first, "d: no"]);
    }

    #[test]
    fn a_test_that_reports_itself_as_skipped_is_not_passed() {
        let text = "skipped test all::a: needs permission to mount\n\
            test result: ok. 3 passed; 0 failed\n";
        let outcome = of(Some(0), text);
        assert_eq!(
            (outcome.passed, outcome.skipped, outcome.missing),
            (2, 1, 0)
        );
        assert_eq!(outcome.names, ["all::a: needs permission to mount"]);
        assert_eq!(outcome.word(), "passed");
    }

    #[test]
    fn a_test_that_misses_what_this_command_installs_fails_the_step() {
        let text =
            "skipped test all::a: needs the program etcd\ntest result: ok. 3 passed; 0 failed\n";
        let outcome = of(Some(0), text);
        assert_eq!((outcome.missing, outcome.word()), (1, "failed"));
    }

    #[test]
    fn a_run_that_its_limit_stopped_says_so() {
        let outcome = of(None, "test result: ok. 3 passed; 0 failed\n");
        assert_eq!(outcome.failed, 1);
        assert!(
            outcome.note.contains("limit of 30 minutes"),
            "{}",
            outcome.note
        );
    }

    #[test]
    fn a_run_without_a_test_fails() {
        assert_eq!(of(Some(101), "error: could not compile").failed, 1);
        assert_eq!(of(Some(0), "").word(), "failed");
    }

    #[test]
    fn the_slowest_programs_come_first_with_their_packages() {
        let text = "     Running unittests src/lib.rs (target/debug/deps/rufous_sim-0a)\n\
            test result: ok. 3 passed; 0 filtered out; finished in 0.60s\n\
                 Running tests/all/main.rs (target/debug/deps/all-1b)\n\
            test result: ok. 1 passed; 0 filtered out; finished in 90.00s\n\
               Doc-tests rufous\n\
            test result: ok. 0 passed; 0 filtered out; finished in 1.20s\n";
        assert_eq!(
            slowest(text),
            "minutes  slowest test programs\n   1.50  rufous_sim, tests/all\n   \
             0.02  rufous, documentation\n   0.01  rufous_sim\n"
        );
    }
}
