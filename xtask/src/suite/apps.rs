//! Applications that know Redis only, each doing a real job against the server: the programs in
//! `xtask/apps`, which say of every thing they check whether it went well.

use super::record::Row;
use super::tcl::suites;
use super::{Outcome, Run};
use crate::process::{line, watch};
use crate::{install, project};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A program takes seconds; one that hangs is stopped after this.
const LIMIT: Duration = Duration::from_secs(300);
/// How programs report the three outcomes, and that they came to their end.
const OK: &str = "[ok] ";
const FAILED: &str = "[failed] ";
const MISSING: &str = "[missing] ";
const END: &str = "[end] ";

/// What one program's output says.
#[derive(Default, Debug, PartialEq, Eq)]
struct Report {
    ok: usize,
    failures: Vec<String>,
    /// What the application has to do without here.
    missing: Vec<String>,
    ended: bool,
}

pub(super) fn run(run: &Run) -> Result<Outcome> {
    let python = install::applications()?;
    let programs = project::root().join("xtask/apps");
    let mut outcome = Outcome {
        rows: Vec::new(),
        complaints: Vec::new(),
    };
    for app in suites()?.apps {
        let (row, complaints) = one(run, &python, &programs, &app.app, app.reference)?;
        outcome.rows.push(row);
        outcome.complaints.extend(complaints);
    }
    Ok(outcome)
}

fn one(
    run: &Run,
    python: &Path,
    programs: &Path,
    name: &str,
    reference: usize,
) -> Result<(Row, Vec<String>)> {
    let log = run.logs.join(format!("app-{name}.log"));
    let mut server = run
        .target
        .start(&run.logs.join(format!("app-{name}-server.log")))?;
    let mut command = Command::new(python);
    command
        .current_dir(programs)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(format!("{name}.py"))
        .args([&server.host, &server.port.to_string()]);
    let finished = watch(&mut command, LIMIT, run.verbose)?;
    fs::write(&log, format!("{}\n{}", line(&command), finished.text))
        .with_context(|| log.display().to_string())?;
    let report = parse(&finished.text);
    println!("{name}: {} ok, {} failed", report.ok, report.failures.len());
    for missing in &report.missing {
        println!("{name}: does without {missing}");
    }
    let mut complaints: Vec<String> = report
        .failures
        .iter()
        .map(|failure| format!("{name}: {failure}"))
        .collect();
    if let Some(end) = server.ended() {
        complaints.push(format!("{name}: the server {end}"));
    }
    if !report.ended || (report.failures.is_empty() && !finished.success()) {
        complaints.push(format!("{name}: broke off: see {}", log.display()));
    }
    let row = Row {
        name: name.to_owned(),
        ok: report.ok,
        failed: complaints.len(),
        skipped: report.missing.len(),
        reference: Some(reference),
    };
    Ok((row, complaints))
}

fn parse(text: &str) -> Report {
    let mut report = Report::default();
    for line in text.lines() {
        if line.starts_with(OK) {
            report.ok += 1;
        } else if let Some(what) = line.strip_prefix(FAILED) {
            report.failures.push(what.to_owned());
        } else if let Some(what) = line.strip_prefix(MISSING) {
            report.missing.push(what.to_owned());
        } else if line.starts_with(END) {
            report.ended = true;
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_report_is_counted() {
        let report = parse("[ok] a\nwarning\n[failed] b: 1 instead of 2\n[missing] c\n[end] 1\n");
        assert_eq!((report.ok, report.ended), (1, true));
        assert_eq!(report.failures, ["b: 1 instead of 2"]);
        assert_eq!(report.missing, ["c"]);
    }

    #[test]
    fn a_program_that_breaks_off_has_not_ended() {
        assert!(!parse("[ok] a\nTraceback (most recent call last):\n").ended);
    }

    #[test]
    fn every_application_listed_has_its_program() {
        for app in suites().unwrap().apps {
            let program = project::root().join(format!("xtask/apps/{}.py", app.app));
            assert!(program.is_file(), "{}", program.display());
        }
    }
}
