//! Whether a history of transactions is strictly serializable, by the checker of the `adya` crate: cycles of
//! dependencies between transactions, with real time.

use std::fmt::Write;

use adya::{History, Opts, Valid, Workload, check};
use anyhow::{Result, anyhow};

use super::{Came, Step, Transaction};

/// What may not be, in words; nothing where the history can be.
pub fn judge(transactions: &[Transaction]) -> Result<Vec<String>> {
    if transactions.is_empty() {
        return Ok(Vec::new());
    }
    let history = History::from_json(&lines(transactions)).map_err(|error| anyhow!("{error}"))?;
    let options = Opts {
        models: vec!["strict-serializable".to_owned()],
        ..Opts::default()
    };
    let report = check(&history, Workload::ListAppend, &options);
    match report.valid {
        Valid::True => Ok(Vec::new()),
        _ if report.anomaly_types.is_empty() => Ok(vec!["the history cannot be judged".to_owned()]),
        _ => {
            let anomalies = report.anomalies.values().flatten();
            Ok(anomalies
                .map(|one| format!("{}: {}", one.kind, one.explanation))
                .collect())
        }
    }
}

/// The history as the checker reads it: a line for each request and each end, in order of time.
pub fn lines(transactions: &[Transaction]) -> String {
    let mut events = Vec::new();
    for one in transactions {
        let asked = steps(&one.steps, false);
        let (kind, ended) = match one.came {
            Came::Done => ("ok", steps(&one.steps, true)),
            Came::NotDone => ("fail", asked.clone()),
            Came::Unknown => ("info", asked.clone()),
        };
        events.push((one.asked_us, 1, line("invoke", one.process, &asked)));
        // What ended in the microsecond in which another began was over before it.
        events.push((one.ended_us, 0, line(kind, one.process, &ended)));
    }
    // A transaction that took no time ends after it began.
    events.sort_by_key(|(at, order, _)| (*at, *order));
    events.into_iter().map(|(_, _, line)| line).collect()
}

fn line(kind: &str, process: u64, steps: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"process\":{process},\"value\":[{steps}]}}\n")
}

fn steps(steps: &[Step], with_reads: bool) -> String {
    let mut text = String::new();
    for step in steps {
        let comma = if text.is_empty() { "" } else { "," };
        let written = match step {
            Step::Append(list, element) => write!(text, "{comma}[\"append\",\"{list}\",{element}]"),
            Step::Read(list, Some(read)) if with_reads => {
                write!(text, "{comma}[\"r\",\"{list}\",{read:?}]")
            }
            Step::Read(list, _) => write!(text, "{comma}[\"r\",\"{list}\",null]"),
        };
        debug_assert!(written.is_ok(), "a String takes all text");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(process: u64, (asked_us, ended_us): (u64, u64), steps: Vec<Step>) -> Transaction {
        Transaction {
            process,
            asked_us,
            ended_us,
            steps,
            came: Came::Done,
        }
    }

    fn read(list: &str, elements: &[u64]) -> Step {
        Step::Read(list.to_owned(), Some(elements.to_vec()))
    }

    fn append(list: &str, element: u64) -> Step {
        Step::Append(list.to_owned(), element)
    }

    #[track_caller]
    fn check(can_be: bool, transactions: &[Transaction]) {
        let found = judge(transactions).unwrap();
        assert_eq!(found.is_empty(), can_be, "{found:?}");
    }

    #[test]
    fn transactions_one_after_the_other_can_be() {
        check(true, &[]);
        let one = done(0, (0, 5), vec![append("x", 1), append("y", 2)]);
        let two = done(1, (6, 9), vec![read("x", &[1]), read("y", &[2])]);
        check(true, &[one, two]);
    }

    #[test]
    fn a_part_of_a_transaction_cannot_be_read() {
        let one = done(0, (0, 5), vec![append("x", 1), append("y", 2)]);
        let torn = done(1, (2, 9), vec![read("x", &[1]), read("y", &[])]);
        check(false, &[one, torn]);
    }

    #[test]
    fn what_ended_before_a_read_began_is_read() {
        let one = done(0, (0, 5), vec![append("x", 1)]);
        let two = done(0, (6, 9), vec![append("x", 2), read("x", &[1, 2])]);
        let stale = done(1, (10, 12), vec![read("x", &[1])]);
        let third = done(1, (13, 14), vec![read("x", &[1, 2])]);
        check(false, &[one, two, stale, third]);
    }

    #[test]
    fn write_skew_cannot_be() {
        let one = done(0, (0, 9), vec![read("x", &[]), append("y", 1)]);
        let two = done(1, (0, 9), vec![read("y", &[]), append("x", 2)]);
        let after = done(2, (10, 12), vec![read("x", &[2]), read("y", &[1])]);
        check(false, &[one, two, after]);
    }

    #[test]
    fn a_transaction_without_an_outcome_may_have_happened_or_not() {
        let mut unknown = done(0, (0, 5), vec![append("x", 1)]);
        unknown.came = Came::Unknown;
        check(
            true,
            &[unknown.clone(), done(1, (6, 9), vec![read("x", &[1])])],
        );
        check(true, &[unknown, done(1, (6, 9), vec![read("x", &[])])]);
        let mut refused = done(0, (0, 5), vec![append("x", 1)]);
        refused.came = Came::NotDone;
        check(false, &[refused, done(1, (6, 9), vec![read("x", &[1])])]);
    }
}
