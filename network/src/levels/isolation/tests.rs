//! Histories of transactions that break each rule.

use super::*;
use crate::levels::level::{ALL, Kind};

const K: u64 = 0;
const L: u64 = 1;

fn value(transaction: u64, part: u64) -> Value {
    Value {
        transaction,
        part,
        is_last: part == 2,
    }
}

fn wrote(key: u64, transaction: u64, part: u64) -> Step {
    Step {
        key,
        at: 0,
        what: What::Wrote(value(transaction, part)),
    }
}

/// A reply at that time; transaction 0 means nothing.
fn read(at: u64, key: u64, transaction: u64, part: u64) -> Step {
    let found = (transaction > 0).then(|| value(transaction, part));
    Step {
        key,
        at,
        what: What::Read(found),
    }
}

/// Commits at that time, or is rolled back.
fn transaction(no: u64, commits_at: Option<u64>, steps: &[Step]) -> Transaction {
    Transaction {
        no,
        node: 1,
        at_ms: 0,
        steps: steps.to_vec(),
        commits_at,
        outcome: match commits_at {
            Some(_) => Outcome::Committed,
            None => Outcome::RolledBack,
        },
    }
}

fn writer(no: u64, commits_at: Option<u64>) -> Transaction {
    let steps = [
        wrote(K, no, 1),
        wrote(L, no, 1),
        wrote(K, no, 2),
        wrote(L, no, 2),
    ];
    transaction(no, commits_at, &steps)
}

/// What each level of transactions finds: read-uncommitted, read-committed, item-cut.
fn found(transactions: &[Transaction], last: [(u64, u64); 2]) -> [Vec<Wrong>; 3] {
    let of = |(transaction, part)| (transaction > 0).then(|| value(transaction, part));
    let last = Last::from([(K, of(last[0])), (L, of(last[1]))]);
    let levels = ["read-uncommitted", "read-committed", "item-cut"];
    levels.map(|name| {
        let level = ALL.iter().find(|level| level.name == name);
        let Some(Kind::Transactions(rules)) = level.map(|level| level.kind) else {
            panic!("{name} is a level of transactions");
        };
        let wrong = judge(rules, transactions, &last);
        wrong.into_iter().map(|one| one.wrong).collect()
    })
}

/// At read-uncommitted nothing, at the others this.
fn above(wrong: Wrong) -> [Vec<Wrong>; 3] {
    [vec![], vec![wrong], vec![wrong]]
}

#[test]
fn reads_of_what_is_committed_are_right() {
    let reads = [read(20, K, 1, 2), read(21, L, 1, 2), read(22, K, 1, 2)];
    let all = [writer(1, Some(10)), transaction(2, Some(30), &reads)];
    assert_eq!(found(&all, [(1, 2), (1, 2)]), [vec![], vec![], vec![]]);
}

#[test]
fn only_what_is_committed_is_seen() {
    let early = transaction(2, Some(30), &[read(9, K, 1, 2)]);
    let all = [writer(1, Some(10)), early];
    assert_eq!(found(&all, [(1, 2), (1, 2)]), above(Wrong::Uncommitted));
    let replaced = transaction(2, Some(30), &[read(20, K, 1, 1)]);
    let all = [writer(1, Some(10)), replaced];
    assert_eq!(found(&all, [(1, 2), (1, 2)]), above(Wrong::Replaced));
    let rolled_back = transaction(2, Some(30), &[read(20, K, 1, 2)]);
    let all = [writer(1, None), rolled_back];
    assert_eq!(found(&all, [(0, 0), (0, 0)]), above(Wrong::RolledBack));
}

#[test]
fn a_transaction_sees_its_own_writes() {
    let mut own = writer(1, Some(10));
    own.steps.push(read(9, K, 0, 0));
    assert_eq!(
        found(&[own], [(1, 2), (1, 2)]),
        above(Wrong::OwnWriteMissing)
    );
    let mut own = writer(1, Some(10));
    own.steps.insert(1, read(5, K, 1, 1));
    own.steps.push(read(9, K, 1, 2));
    assert_eq!(found(&[own], [(1, 2), (1, 2)]), [vec![], vec![], vec![]]);
}

#[test]
fn a_key_keeps_its_value_at_item_cut() {
    let reads = [read(1, K, 0, 0), read(2, L, 0, 0), read(20, K, 1, 2)];
    let all = [writer(1, Some(10)), transaction(2, Some(30), &reads)];
    let changed = [vec![], vec![], vec![Wrong::Changed]];
    assert_eq!(found(&all, [(1, 2), (1, 2)]), changed);
}

#[test]
fn one_of_two_transactions_wins_on_all_keys() {
    let both = [writer(1, Some(10)), writer(2, Some(11))];
    let torn = vec![Wrong::Torn];
    assert_eq!(
        found(&both, [(1, 2), (2, 2)]),
        [torn.clone(), torn.clone(), torn]
    );
    // The second has not written the other key.
    let one = transaction(2, Some(11), &[wrote(L, 2, 2)]);
    let all = [writer(1, Some(10)), one];
    assert_eq!(found(&all, [(1, 2), (2, 2)]), [vec![], vec![], vec![]]);
}

#[test]
fn the_end_has_the_last_writes_of_known_transactions() {
    let one = [writer(1, Some(10))];
    let wrong = |wrong| [vec![wrong], vec![wrong], vec![wrong]];
    assert_eq!(found(&one, [(0, 0), (1, 2)]), wrong(Wrong::Lost));
    assert_eq!(found(&one, [(9, 2), (1, 2)]), wrong(Wrong::MadeUp));
    assert_eq!(found(&one, [(1, 1), (1, 2)]), wrong(Wrong::Replaced));
}
