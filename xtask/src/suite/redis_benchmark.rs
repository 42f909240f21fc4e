//! The tests of redis-benchmark that the implemented commands cover. Only that they run without an
//! error counts here: figures of a load generator that shares the machine are not kept.

use super::record::Row;
use super::{Outcome, Run};
use crate::process::{line, watch};
use anyhow::{Result, ensure};
use std::fs;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(300);
/// As `redis-benchmark -t` takes them, and as its results are titled.
const TESTS: [(&str, &str); 6] = [
    ("ping_inline", "PING_INLINE"),
    ("ping_mbulk", "PING_MBULK"),
    ("set", "SET"),
    ("get", "GET"),
    ("incr", "INCR"),
    ("mset", "MSET (10 keys)"),
];
/// One request at a time, pipelined, and pipelined in RESP3.
const VARIANTS: [(&str, &[&str]); 3] = [
    ("plain", &[]),
    ("pipelined", &["-P", "16"]),
    ("RESP3", &["-P", "16", "-3"]),
];

pub(super) fn run(run: &Run) -> Result<Outcome> {
    ensure!(
        crate::process::which("redis-benchmark").is_some(),
        "redis-benchmark is missing (Debian: redis-tools)"
    );
    let mut outcome = Outcome {
        rows: Vec::new(),
        complaints: Vec::new(),
    };
    let mut server = run
        .target
        .start(&run.logs.join("redis-benchmark-server.log"))?;
    for (variant, options) in VARIANTS {
        let mut command = Command::new("redis-benchmark");
        command.args([
            "-h",
            &server.host,
            "-p",
            &server.port.to_string(),
            "--csv",
            "-n",
            "100000",
            "-r",
            "100000",
        ]);
        command
            .args(options)
            .arg("-t")
            .arg(TESTS.map(|(name, _)| name).join(","));
        let finished = watch(&mut command, LIMIT, run.verbose)?;
        let log = run.logs.join(format!("redis-benchmark-{variant}.log"));
        fs::write(&log, format!("{}\n{}", line(&command), finished.text))?;
        let missing: Vec<&str> = TESTS
            .iter()
            .map(|(_, title)| *title)
            .filter(|title| !measured(&finished.text, title))
            .collect();
        for title in &missing {
            outcome
                .complaints
                .push(format!("redis-benchmark {variant}: no result for {title}"));
        }
        if !finished.success() {
            let mut lines = finished.text.lines().rev();
            let reason = lines
                .find(|line| !line.starts_with('"'))
                .unwrap_or_default();
            outcome
                .complaints
                .push(format!("redis-benchmark {variant}: failed: {reason}"));
        }
        outcome.rows.push(Row {
            name: format!("redis-benchmark, {variant}"),
            ok: TESTS.len() - missing.len(),
            failed: missing.len(),
            skipped: 0,
            reference: Some(TESTS.len()),
        });
    }
    if let Some(end) = server.ended() {
        outcome
            .complaints
            .push(format!("redis-benchmark: the server {end}"));
    }
    Ok(outcome)
}

/// Whether the table has a line with a throughput above zero for the test.
fn measured(text: &str, title: &str) -> bool {
    text.lines().any(|line| {
        let fields: Vec<&str> = line
            .trim()
            .split("\",\"")
            .map(|field| field.trim_matches('"'))
            .collect();
        fields[0] == title
            && fields
                .get(1)
                .and_then(|rate| rate.parse::<f64>().ok())
                .is_some_and(|rate| rate > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_with_a_throughput_count() {
        let text = "\"test\",\"rps\"\n\"SET\",\"9000.5\",\"0.1\"\n\"GET\",\"0.00\"\n\"MSET (10 keys)\",\"5.0\",\"1\"\n";
        assert!(measured(text, "SET") && measured(text, "MSET (10 keys)"));
        assert!(!measured(text, "GET") && !measured(text, "INCR") && !measured(text, "test"));
    }
}
