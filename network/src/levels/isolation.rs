//! What transactions may see of one another, each from its definition [HAT §5.1.1]. Each value names the transaction
//! that has written it, and which of its writes to that key it is.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What a level promises, beside the order of concurrent writes, which all have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Only what is committed is seen.
    pub committed: bool,
    /// A key has the same value whenever a transaction reads it.
    pub repeatable: bool,
}

/// A transaction's writes of a key count from 1; the last of them is `is_last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Value {
    pub transaction: u64,
    pub part: u64,
    pub is_last: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Wrote(Value),
    Read(Option<Value>),
}

/// A command of a transaction that was answered.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub key: u64,
    /// Where the reply is in the order of all requests and replies.
    pub at: u64,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Committed,
    RolledBack,
    /// The connection was lost before `COMMIT` was asked for.
    Broken,
    /// No reply to `COMMIT`.
    Unknown,
}

#[derive(Clone, Debug)]
pub struct Transaction {
    pub no: u64,
    pub node: usize,
    pub at_ms: u64,
    pub steps: Vec<Step>,
    /// Where `COMMIT` is in the order of all requests and replies, if it was asked for.
    pub commits_at: Option<u64>,
    pub outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wrong {
    MadeUp,
    /// A write of a transaction that has not asked for `COMMIT` yet.
    Uncommitted,
    RolledBack,
    /// A write that its own transaction has replaced.
    Replaced,
    OwnWriteMissing,
    /// Two reads of a key in one transaction, with two values.
    Changed,
    /// Of two transactions each wins on a key that both have written.
    Torn,
    Lost,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Wrong::MadeUp => "made up",
            Wrong::Uncommitted => "uncommitted write seen",
            Wrong::RolledBack => "rolled back write seen",
            Wrong::Replaced => "replaced write seen",
            Wrong::OwnWriteMissing => "own write missing",
            Wrong::Changed => "two values in one transaction",
            Wrong::Torn => "each of two transactions wins on a key",
            Wrong::Lost => "lost",
        })
    }
}

/// See [`super::rules::Violation`].
#[derive(Clone, Debug)]
pub struct Violation {
    pub wrong: Wrong,
    pub at_ms: u64,
    pub example: String,
}

/// What all replicas have of each key in the end.
pub type Last = BTreeMap<u64, Option<Value>>;

struct Judge<'a> {
    rules: Rules,
    all: BTreeMap<u64, &'a Transaction>,
    violations: Vec<Violation>,
}

/// Everything that contradicts the rules.
pub fn judge(rules: Rules, transactions: &[Transaction], last: &Last) -> Vec<Violation> {
    let mut judge = Judge {
        rules,
        all: transactions.iter().map(|one| (one.no, one)).collect(),
        violations: Vec::new(),
    };
    for transaction in transactions {
        judge.transaction(transaction);
    }
    judge.end(last);
    judge.violations
}

impl Judge<'_> {
    fn transaction(&mut self, transaction: &Transaction) {
        let mut own: BTreeMap<u64, Value> = BTreeMap::new();
        let mut read: BTreeMap<u64, Option<Value>> = BTreeMap::new();
        for step in &transaction.steps {
            let found = match step.what {
                What::Wrote(value) => {
                    own.insert(step.key, value);
                    continue;
                }
                What::Read(found) => found,
            };
            let mut wrong = found.and_then(|value| self.of_value(transaction, step, value));
            match own.get(&step.key) {
                Some(value) if self.rules.committed && found != Some(*value) => {
                    wrong = wrong.or(Some(Wrong::OwnWriteMissing));
                }
                Some(_) => {}
                None => {
                    let before = read.insert(step.key, found);
                    if self.rules.repeatable && before.is_some_and(|before| before != found) {
                        wrong = wrong.or(Some(Wrong::Changed));
                    }
                }
            }
            if let Some(wrong) = wrong {
                self.violations.push(Violation {
                    wrong,
                    at_ms: transaction.at_ms,
                    example: format!(
                        "{wrong}: transaction {} at node {}, {} ms, read {} of key {}",
                        transaction.no,
                        transaction.node,
                        transaction.at_ms,
                        tell(found),
                        step.key
                    ),
                });
            }
        }
    }

    fn of_value(&self, reader: &Transaction, step: &Step, value: Value) -> Option<Wrong> {
        let Some(writer) = self.all.get(&value.transaction) else {
            return Some(Wrong::MadeUp);
        };
        if writer.no == reader.no || !self.rules.committed {
            return None;
        }
        if writer.is_undone() {
            return Some(Wrong::RolledBack);
        }
        if writer.commits_at.is_none_or(|commits| step.at < commits) {
            return Some(Wrong::Uncommitted);
        }
        (!value.is_last).then_some(Wrong::Replaced)
    }

    fn end(&mut self, last: &Last) {
        for (key, found) in last {
            let has_committed = self
                .all
                .values()
                .any(|one| one.outcome == Outcome::Committed && one.last_write(*key).is_some());
            let wrong = match found {
                None => has_committed.then_some(Wrong::Lost),
                Some(value) => self.of_last(*value),
            };
            if let Some(wrong) = wrong {
                let what = format!("{wrong}: in the end key {key} is {}", tell(*found));
                self.at_end(wrong, what);
            }
        }
        let winners: BTreeMap<u64, u64> = { last.iter() }
            .filter_map(|(key, found)| Some((*key, found.as_ref()?.transaction)))
            .collect();
        let mut torn = BTreeSet::new();
        for (key, winner) in &winners {
            let Some(transaction) = self.all.get(winner) else {
                continue;
            };
            for (other, value) in transaction.last_writes() {
                let Some(rival) = winners
                    .get(&other)
                    .filter(|rival| **rival != value.transaction)
                else {
                    continue;
                };
                let wrote_key = self.all.get(rival).and_then(|one| one.last_write(*key));
                if wrote_key.is_some() {
                    torn.insert((*winner.min(rival), *winner.max(rival)));
                }
            }
        }
        for (one, other) in torn {
            let what = format!("{}: {one} and {other}", Wrong::Torn);
            self.at_end(Wrong::Torn, what);
        }
    }

    fn of_last(&self, value: Value) -> Option<Wrong> {
        let Some(writer) = self.all.get(&value.transaction) else {
            return Some(Wrong::MadeUp);
        };
        if self.rules.committed && writer.is_undone() {
            return Some(Wrong::RolledBack);
        }
        let is_whole = !matches!(writer.outcome, Outcome::Broken | Outcome::Unknown);
        (is_whole && !value.is_last).then_some(Wrong::Replaced)
    }

    fn at_end(&mut self, wrong: Wrong, example: String) {
        self.violations.push(Violation {
            wrong,
            at_ms: u64::MAX,
            example,
        });
    }
}

impl Transaction {
    fn is_undone(&self) -> bool {
        matches!(self.outcome, Outcome::RolledBack | Outcome::Broken)
    }

    /// The last that was acknowledged, by key.
    fn last_writes(&self) -> BTreeMap<u64, Value> {
        let writes = self.steps.iter().filter_map(|step| match step.what {
            What::Wrote(value) => Some((step.key, value)),
            What::Read(_) => None,
        });
        writes.collect()
    }

    fn last_write(&self, key: u64) -> Option<Value> {
        self.last_writes().get(&key).copied()
    }
}

fn tell(found: Option<Value>) -> String {
    match found {
        None => "nothing".to_owned(),
        Some(value) => format!("write {} of transaction {}", value.part, value.transaction),
    }
}
