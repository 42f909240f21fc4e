//! Redis's own suite in its external mode: one fresh server per unit, because a run of the whole
//! suite against one server leaks state from unit to unit.

use super::record::Row;
use super::skips::{self, Skip};
use super::{Outcome, Run};
use crate::process::{line, watch};
use crate::{install, project};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A unit that hangs is stopped after this; the longest takes a third of it.
const UNIT_LIMIT: Duration = Duration::from_secs(300);
/// The suite itself names the test that hangs when nothing moves for so many seconds.
const STALL_SECONDS: &str = "90";

/// Tags of tests that are left out, and the reasons.
pub(super) const TAGS: [(&str, &str); 6] = [
    (
        "needs:debug",
        "DEBUG changes or shows internals of Redis (encodings, sleeping, reloading); Rufous has no such command",
    ),
    (
        "needs:pfdebug",
        "PFDEBUG shows how Redis encodes a HyperLogLog; Rufous has no such command",
    ),
    (
        "needs:repl",
        "the test attaches a Redis replica or reads Redis's replication stream; Rufous replicates by its own protocol",
    ),
    (
        "needs:save",
        "the test calls SAVE or BGSAVE and inspects Redis's RDB file; Rufous has other files",
    ),
    (
        "needs:latency",
        "LATENCY is not implemented; metrics hold latencies instead",
    ),
    ("scripting", "scripts and functions are not implemented"),
];

/// Options of the suite that leave out single assertions, and the reasons.
pub(super) const IGNORED: [(&str, &str); 2] = [
    (
        "--ignore-encoding",
        "OBJECT ENCODING names Redis's internal encodings; assertions on the name are left out, the rest of the test runs",
    ),
    (
        "--ignore-digest",
        "DEBUG DIGEST is not implemented; comparisons of whole databases by it are left out",
    ),
];

/// One unit of `docs/compatibility/suites.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Unit {
    pub(crate) unit: String,
    /// What of our commands it covers.
    pub(crate) why: String,
    /// Tests that pass on the reference, with the same tests left out.
    pub(crate) reference: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Suites {
    tcl: Vec<Unit>,
    pub(super) redis_py: Whole,
    pub(super) apps: Vec<App>,
}

/// A suite that is not divided.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Whole {
    /// Tests that pass on the reference, with the same tests left out.
    pub(super) reference: usize,
}

/// One program of `xtask/apps`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct App {
    pub(super) app: String,
    /// What it does, and what of it needs commands that are not there.
    pub(super) why: String,
    /// Checks that pass on the reference.
    pub(super) reference: usize,
}

/// What one unit's output says.
#[derive(Default, Debug)]
struct Report {
    ok: usize,
    /// Left out by the suite itself, by tag.
    ignored: usize,
    skipped: Vec<String>,
    failures: Vec<String>,
    /// The last unit of work ended; otherwise the run broke off.
    done: bool,
}

pub(crate) fn units() -> Result<Vec<Unit>> {
    Ok(suites()?.tcl)
}

pub(super) fn suites() -> Result<Suites> {
    let file = project::root().join("docs/compatibility/suites.toml");
    let text =
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    toml::from_str(&text).with_context(|| file.display().to_string())
}

pub(super) fn run(run: &Run, only: &[String]) -> Result<Outcome> {
    let source = install::redis_source()?;
    let skips = skips::read(&project::root().join("docs/compatibility/tcl-skip.txt"))?;
    let listed = units()?;
    for skip in &skips {
        ensure!(
            listed.iter().any(|unit| unit.unit == skip.section),
            "tcl-skip.txt: {} is not run",
            skip.section
        );
    }
    let mut wanted: Vec<(String, Option<usize>)> = listed
        .iter()
        .map(|unit| (unit.unit.clone(), Some(unit.reference)))
        .collect();
    if !only.is_empty() {
        wanted.retain(|(unit, _)| only.contains(unit));
        let unlisted = only
            .iter()
            .filter(|unit| !listed.iter().any(|known| known.unit == **unit));
        wanted.extend(unlisted.map(|unit| (unit.clone(), None)));
    }
    let mut outcome = Outcome {
        rows: Vec::new(),
        complaints: Vec::new(),
    };
    for (unit, reference) in wanted {
        let own: Vec<&Skip> = skips.iter().filter(|skip| skip.section == unit).collect();
        let (row, complaints) = one(run, &source, &unit, &own, reference)?;
        println!(
            "{unit}: {} ok, {} failed, {} skipped",
            row.ok, row.failed, row.skipped
        );
        outcome.rows.push(row);
        outcome.complaints.extend(complaints);
    }
    Ok(outcome)
}

fn one(
    run: &Run,
    source: &Path,
    unit: &str,
    skips: &[&Skip],
    reference: Option<usize>,
) -> Result<(Row, Vec<String>)> {
    let stem = unit.replace('/', "_");
    let log = run.logs.join(format!("tcl-{stem}.log"));
    let mut server = run
        .target
        .start(&run.logs.join(format!("tcl-{stem}-server.log")))?;
    let mut command = command(
        source,
        &server.host,
        server.port,
        unit,
        &skip_file(&run.logs, &stem, skips)?,
    );
    let finished = watch(&mut command, UNIT_LIMIT, run.verbose)?;
    fs::write(&log, format!("{}\n{}", line(&command), finished.text))?;
    let report = parse(&finished.text);
    let mut complaints: Vec<String> = report
        .failures
        .iter()
        .map(|failure| format!("{unit}: failed: {failure}"))
        .collect();
    if let Some(end) = server.ended() {
        complaints.push(format!("{unit}: the server {end}: see {}", log.display()));
    }
    if !report.done {
        complaints.push(format!("{unit}: the run broke off: see {}", log.display()));
    }
    // A run that broke off has not come to all entries.
    for skip in skips
        .iter()
        .filter(|skip| report.done && !is_used(skip, &report.skipped))
    {
        complaints.push(format!(
            "{unit}: tcl-skip.txt names a test that is not there: {}",
            skip.entry
        ));
    }
    let row = Row {
        name: unit.to_owned(),
        ok: report.ok,
        failed: complaints.len(),
        skipped: report.skipped.len() + report.ignored,
        reference,
    };
    Ok((row, complaints))
}

fn command(source: &Path, host: &str, port: u16, unit: &str, skip_file: &Path) -> Command {
    let mut command = Command::new("./runtest");
    // Without a terminal's name the suite prints no colours.
    command.current_dir(source).env("TERM", "dumb");
    command.args([
        "--host",
        host,
        "--port",
        &port.to_string(),
        "--single",
        unit,
    ]);
    let tags: Vec<String> = TAGS.iter().map(|(tag, _)| format!("-{tag}")).collect();
    command.args(["--durable", "--tags", &tags.join(" ")]);
    command.args(IGNORED.map(|(option, _)| option));
    command
        .arg("--skipfile")
        .arg(skip_file)
        .args(["--timeout", STALL_SECONDS]);
    command
}

/// The suite takes one name or `/pattern` per line and knows no comments.
fn skip_file(logs: &Path, stem: &str, skips: &[&Skip]) -> Result<PathBuf> {
    let file = logs.join(format!("tcl-{stem}.skip"));
    let lines: Vec<&str> = skips.iter().map(|skip| skip.entry.as_str()).collect();
    fs::write(&file, lines.join("\n") + "\n")?;
    Ok(file)
}

/// Patterns are for the suite to match, so any skipped test may be theirs.
fn is_used(skip: &Skip, skipped: &[String]) -> bool {
    if skip.entry.starts_with('/') {
        !skipped.is_empty()
    } else {
        skipped.contains(&skip.entry)
    }
}

fn parse(text: &str) -> Report {
    let mut report = Report::default();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim() == "The End" {
            break; // what follows repeats the failures
        }
        let Some((kind, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']'))
        else {
            continue;
        };
        let name = rest.trim_start_matches(':').trim();
        match kind {
            "ok" => report.ok += 1,
            "ignore" => report.ignored += 1,
            "skip" => report.skipped.push(name.to_owned()),
            "err" | "exception" | "TIMEOUT" => {
                let detail = lines
                    .peek()
                    .filter(|next| !next.starts_with('['))
                    .map_or("", |next| next.trim());
                report
                    .failures
                    .push(format!("{name}: {detail}").chars().take(400).collect());
            }
            kind if kind.ends_with(" done") => report.done = true,
            _ => {}
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "[ready]: 12\nTesting unit/a\n[ok]: SET and GET (1 ms)\n[skip]: COPY list\n\
        [ignore]: Debug: Tag: needs:debug denied\n[err]: INCR [x] in tests/unit/a.tcl\nExpected '1' to be '2'\n\
        [ok]: last (0 ms)\n[1/1 done]: unit/a (2 seconds)\n\n                   The End\n\n\
        *** [err]: INCR [x] in tests/unit/a.tcl\n[err]: repeated\n";

    #[test]
    fn outcomes_are_counted_and_failures_named() {
        let report = parse(OUTPUT);
        assert_eq!((report.ok, report.ignored, report.done), (2, 1, true));
        assert_eq!(report.skipped, ["COPY list"]);
        assert_eq!(
            report.failures,
            ["INCR [x] in tests/unit/a.tcl: Expected '1' to be '2'"]
        );
    }

    #[test]
    fn a_broken_run_is_told() {
        let report = parse(
            "[ok]: a (0 ms)\n[exception]: Executing test client: I/O error\n    while executing\n",
        );
        assert!(!report.done);
        assert_eq!(report.failures.len(), 1);
    }

    #[test]
    fn entries_that_skip_nothing_are_noticed() {
        let skip = |entry: &str| Skip {
            section: "u".into(),
            entry: entry.into(),
            reason: "r".into(),
        };
        assert!(is_used(&skip("a"), &["a".to_owned()]));
        assert!(!is_used(&skip("b"), &["a".to_owned()]));
        assert!(!is_used(&skip("/b"), &[]));
    }

    #[test]
    fn the_lists_of_the_repository_can_be_read() {
        let units = units().unwrap();
        assert!(units.iter().all(|unit| !unit.why.is_empty()));
        assert!(
            !skips::read(&project::root().join("docs/compatibility/tcl-skip.txt"))
                .unwrap()
                .is_empty()
        );
    }
}
