//! Results that are kept: `docs/compatibility/results.toml`, in which counts of passed tests may
//! only rise, and the table in `docs/compatibility/README.md` that is generated from it.

use super::Tally;
use super::tcl::{IGNORED, TAGS, suites, units};
use crate::project;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

/// One unit of a suite.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) ok: usize,
    pub(crate) failed: usize,
    /// Left out by our list or by the suite itself.
    pub(crate) skipped: usize,
    /// What passes on Redis with the same commands and the same tests left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reference: Option<usize>,
}

/// Recorded rows by suite.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Results {
    #[serde(flatten)]
    suites: BTreeMap<String, Vec<Row>>,
}

fn file() -> PathBuf {
    project::root().join("docs/compatibility/results.toml")
}

impl Results {
    pub(crate) fn read() -> Result<Self> {
        match fs::read_to_string(file()) {
            Ok(text) => toml::from_str(&text).context("docs/compatibility/results.toml"),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).context("docs/compatibility/results.toml"),
        }
    }

    fn known(&self, suite: &str, name: &str) -> Option<&Row> {
        self.suites.get(suite)?.iter().find(|row| row.name == name)
    }

    /// Rows in which fewer tests pass than were recorded.
    pub(crate) fn regressions(&self, suite: &str, rows: &[Row]) -> Vec<String> {
        let fewer = rows.iter().filter_map(|row| {
            let before = self.known(suite, &row.name)?.ok;
            (row.ok < before)
                .then(|| format!("{}: {} passed, {before} are recorded", row.name, row.ok))
        });
        fewer.collect()
    }

    /// Takes over rows, except where that would lower the number of passed tests.
    pub(crate) fn update(&mut self, suite: &str, rows: Vec<Row>) {
        for row in rows {
            let known = self.suites.entry(suite.to_owned()).or_default();
            match known.iter_mut().find(|old| old.name == row.name) {
                Some(old) if old.ok <= row.ok => *old = row,
                Some(_) => {}
                None => known.push(row),
            }
        }
    }

    /// Writes the results and the document generated from them.
    pub(crate) fn write(&self) -> Result<()> {
        let head = "# Written by `cargo xtask suite all --record`; counts of passed tests may only rise.\n\n";
        fs::write(file(), head.to_owned() + &toml::to_string(self)?)?;
        fs::write(
            project::root().join("docs/compatibility/README.md"),
            self.document()?,
        )?;
        Ok(())
    }

    fn document(&self) -> Result<String> {
        let mut text = String::from(
            "# Compatibility, by the suites of others\n\n\
             Written by `cargo xtask suite all --record`; run `cargo xtask suite all` to print it anew, and add\n\
             `--reference` to see a Redis 7.0 with the same commands. Left out, with reasons:\n\
             [tcl-skip.txt](tcl-skip.txt) and [redis-py-skip.txt](redis-py-skip.txt); what runs and why:\n\
             [suites.toml](suites.toml). Counts of passed tests are kept in `results.toml` and may only rise.\n\
             `cargo xtask suite cluster-clients` is a run of its own: [what it does](../clients/cluster.md).\n\
             What MULTI, EXEC and WATCH do: [transactions](transactions.md).\n",
        );
        if self.suites.is_empty() {
            text.push_str("\nNothing is recorded yet.\n");
        }
        for (suite, rows) in &self.suites {
            write!(
                text,
                "\n## {suite}\n\n`cargo xtask suite {suite}`: {}.\n\n{}",
                totals(rows),
                table(rows)
            )?;
        }
        text.push_str("\n## What the units of the Tcl suite cover\n\n");
        text.push_str("The number is what passes on Redis with the same commands.\n\n");
        for unit in units()? {
            writeln!(text, "- `{}` ({}): {}", unit.unit, unit.reference, unit.why)?;
        }
        text.push_str("\n## What of the Tcl suite is left out by tag\n\n");
        text.push_str("Single tests are in [tcl-skip.txt](tcl-skip.txt).\n\n");
        for (tag, why) in TAGS.iter().chain(&IGNORED) {
            writeln!(text, "- `{tag}`: {why}")?;
        }
        text.push_str("\n## What the applications do\n\n");
        for app in suites()?.apps {
            writeln!(text, "- `{}` ({}): {}", app.app, app.reference, app.why)?;
        }
        Ok(text)
    }
}

/// The rows as a Markdown table.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| unit | ok | Redis with the same commands | failed | skipped |\n|---|---|---|---|---|\n",
    );
    for row in rows {
        let reference = row
            .reference
            .map_or_else(|| "–".to_owned(), |count| count.to_string());
        text.push_str(&format!(
            "| {} | {} | {reference} | {} | {} |\n",
            row.name, row.ok, row.failed, row.skipped
        ));
    }
    text
}

/// The sums over all rows, in words.
pub(crate) fn totals(rows: &[Row]) -> String {
    let sums = tally(rows);
    format!(
        "{} ok, {} failed, {} skipped",
        sums.ok, sums.failed, sums.skipped
    )
}

/// The sums over all rows.
pub(crate) fn tally(rows: &[Row]) -> Tally {
    let sum = |of: fn(&Row) -> usize| rows.iter().map(of).sum();
    Tally {
        ok: sum(|row| row.ok),
        failed: sum(|row| row.failed),
        skipped: sum(|row| row.skipped),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, ok: usize) -> Row {
        Row {
            name: name.to_owned(),
            ok,
            failed: 1,
            skipped: 2,
            reference: None,
        }
    }

    #[test]
    fn recorded_counts_only_rise() {
        let mut results = Results::default();
        results.update("tcl", vec![row("a", 5), row("b", 5)]);
        results.update("tcl", vec![row("a", 4), row("b", 6)]);
        assert_eq!(results.known("tcl", "a").unwrap().ok, 5);
        assert_eq!(results.known("tcl", "b").unwrap().ok, 6);
        assert_eq!(
            results.regressions("tcl", &[row("a", 4), row("b", 6), row("c", 0)]),
            ["a: 4 passed, 5 are recorded"]
        );
    }

    #[test]
    fn results_survive_their_file_format() {
        let mut results = Results::default();
        results.update(
            "tcl",
            vec![Row {
                reference: Some(7),
                ..row("unit/a", 5)
            }],
        );
        let back: Results = toml::from_str(&toml::to_string(&results).unwrap()).unwrap();
        assert_eq!(back.known("tcl", "unit/a").unwrap().reference, Some(7));
    }

    #[test]
    fn the_committed_document_is_the_generated_one() {
        let committed = fs::read_to_string(project::root().join("docs/compatibility/README.md"));
        assert_eq!(
            committed.unwrap(),
            Results::read().unwrap().document().unwrap()
        );
    }

    #[test]
    fn tables_have_a_line_per_row() {
        let text = table(&[row("a", 5), row("b", 6)]);
        assert_eq!(text.lines().count(), 4);
        assert_eq!(
            totals(&[row("a", 5), row("b", 6)]),
            "11 ok, 2 failed, 4 skipped"
        );
    }
}
