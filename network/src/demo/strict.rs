//! Clients of strict keys: transactions of three keys with one writer and readers everywhere, and
//! counters.
//!
//! Each writer has keys of its own and does one thing at a time, so it knows what a reader may
//! see. When the outcome of a write is unknown the writer leaves its keys and takes new ones: what
//! it left has what was acknowledged, or the unknown write as well.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rufous_bench::client::Reply;

use super::account::{Account, Wrong};
use crate::door::{Commands, Door, Route, Told, command};

/// Keys of a transaction.
const PARTS: [&str; 3] = ["a", "b", "c"];
/// Bytes of a large value; three of them exceed any single message of a chain.
const LARGE: usize = 700_000;
/// Between two operations of a client.
const PAUSE: Duration = Duration::from_millis(3);
/// After a refusal, and between two reads of large values.
const REST: Duration = Duration::from_millis(50);

/// What all clients of strict keys share.
#[derive(Debug)]
pub struct Strict {
    pub account: Account,
    pub ends: AtomicBool,
    /// Values of transactions are large, and deleted again.
    pub large: AtomicBool,
    pub groups: Vec<Group>,
    /// Keys that writers have left, with the least and the most that they may have.
    left: Mutex<Vec<Left>>,
}

/// A key that no one writes any more.
#[derive(Clone, Debug)]
pub struct Left {
    key: String,
    least: u64,
    most: u64,
}

/// The keys of one writer of transactions, as its readers know them.
#[derive(Debug, Default)]
pub struct Group {
    generation: AtomicU64,
    acknowledged: AtomicU64,
    asked: AtomicU64,
    /// The last transaction that deleted.
    deleted: AtomicU64,
}

impl Strict {
    pub fn new(groups: usize) -> Self {
        Self {
            account: Account::default(),
            ends: AtomicBool::new(false),
            large: AtomicBool::new(false),
            groups: (0..groups).map(|_| Group::default()).collect(),
            left: Mutex::default(),
        }
    }

    fn ends(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }

    fn leave(&self, left: Left) {
        let mut all = self
            .left
            .lock()
            .unwrap_or_else(|broken| broken.into_inner());
        all.push(left);
    }

    /// Reads what writers have left, by `route`; returns how many keys were read.
    pub fn audit(&self, route: Route) -> usize {
        let left = std::mem::take(&mut *self.left.lock().unwrap_or_else(|b| b.into_inner()));
        let mut door = Door::new(route, &self.account);
        let mut read = 0;
        for left in left {
            let words = vec![command(&["GET", &left.key])];
            let value = (0..100).find_map(|_| match door.ask(&words) {
                Told::Replies(replies) => number(&replies[0]),
                _ => {
                    std::thread::sleep(REST);
                    None
                }
            });
            match value {
                Some(value) if (left.least..=left.most).contains(&value) => read += 1,
                found => self
                    .account
                    .on_wrong(Wrong::Lost, format!("{left:?} has {found:?}")),
            }
        }
        read
    }
}

fn number(reply: &Reply) -> Option<u64> {
    match reply {
        Reply::Nil => Some(0),
        Reply::Integer(number) => u64::try_from(*number).ok(),
        Reply::Bulk(text) => {
            let digits = text.split(|byte| *byte == b' ').next()?;
            std::str::from_utf8(digits).ok()?.parse().ok()
        }
        _ => None,
    }
}

/// Keys of a group have one hash tag: at the redirecting endpoint a transaction is of one slot.
fn key(group: usize, generation: u64, part: &str) -> String {
    format!("{{t{group}.{generation}}}{part}")
}

/// Writes transactions of one group until the demonstration ends.
pub fn write_transactions(strict: &Strict, no: usize, route: Route) {
    let mut door = Door::new(route, &strict.account);
    let group = &strict.groups[no];
    while !strict.ends() {
        let generation = group.generation.load(Ordering::SeqCst);
        let value = group.asked.load(Ordering::SeqCst) + 1;
        let is_large = strict.large.load(Ordering::Relaxed);
        let deletes = is_large && value.is_multiple_of(2);
        group.asked.store(value, Ordering::SeqCst);
        if deletes {
            group.deleted.store(value, Ordering::SeqCst);
        }
        let told = door.ask(&transaction(no, generation, value, (is_large, deletes)));
        let least = group.acknowledged.load(Ordering::SeqCst);
        match told {
            Told::Replies(_) => group.acknowledged.store(value, Ordering::SeqCst),
            // The next attempt has a value of its own; this one was not written.
            Told::Refused(_) => std::thread::sleep(REST),
            Told::Unknown => {
                if group.deleted.load(Ordering::SeqCst) < least.max(1) {
                    let key = key(no, generation, "a");
                    strict.leave(Left {
                        key,
                        least,
                        most: value,
                    });
                }
                // A reader that knows the new generation must not know the old acknowledgement.
                group.acknowledged.store(0, Ordering::SeqCst);
                group.deleted.store(0, Ordering::SeqCst);
                group.generation.store(generation + 1, Ordering::SeqCst);
            }
        }
        std::thread::sleep(PAUSE);
    }
}

fn transaction(no: usize, generation: u64, value: u64, how: (bool, bool)) -> Commands {
    let (is_large, deletes) = how;
    let mut text = value.to_string();
    if is_large {
        text.push(' ');
        text.extend(std::iter::repeat_n('x', LARGE));
    }
    let mut commands = vec![command(&["MULTI"])];
    for part in PARTS {
        let key = key(no, generation, part);
        commands.push(if deletes {
            command(&["DEL", &key])
        } else {
            command(&["SET", &key, &text])
        });
    }
    commands.push(command(&["EXEC"]));
    commands
}

/// Reads the keys of all groups in turn until the demonstration ends.
pub fn read_transactions(strict: &Strict, route: Route) {
    let place = route.to_string();
    let mut door = Door::new(route, &strict.account);
    let mut turn = 0;
    while !strict.ends() {
        let no = turn % strict.groups.len();
        turn += 1;
        let group = &strict.groups[no];
        let generation = group.generation.load(Ordering::SeqCst);
        let least = group.acknowledged.load(Ordering::SeqCst);
        let keys = PARTS.map(|part| key(no, generation, part));
        let words = ["MGET", &keys[0], &keys[1], &keys[2]];
        let told = door.ask(&vec![command(&words)]);
        let (most, deleted) = (
            group.asked.load(Ordering::SeqCst),
            group.deleted.load(Ordering::SeqCst),
        );
        let is_current = group.generation.load(Ordering::SeqCst) == generation;
        if let Told::Replies(replies) = told
            && let Some(Reply::Array(values)) = replies.first()
        {
            let values: Vec<_> = values.iter().map(number).collect();
            let seen =
                format!("group {no} at {place}: {values:?}, acknowledged {least}, asked {most}");
            if values.iter().any(|value| *value != values[0]) {
                strict.account.on_wrong(Wrong::Torn, seen);
            } else if is_current && !may_be(values[0], (least, most), deleted) {
                strict.account.on_wrong(Wrong::Stale, seen);
            }
        }
        let is_large = strict.large.load(Ordering::Relaxed);
        std::thread::sleep(if is_large { REST } else { PAUSE });
    }
}

fn may_be(value: Option<u64>, (least, most): (u64, u64), deleted: u64) -> bool {
    match value {
        Some(0) => least == 0 || deleted >= least,
        Some(value) => (least..=most).contains(&value),
        None => false,
    }
}

/// Counts on a key of its own until the demonstration ends: each reply is one more than the last.
pub fn count(strict: &Strict, name: &str, route: Route) {
    let mut door = Door::new(route, &strict.account);
    let (mut generation, mut acknowledged) = (0, 0);
    while !strict.ends() {
        let key = format!("count:{name}:{generation}");
        match door.ask(&vec![command(&["INCR", &key])]) {
            Told::Replies(replies) => {
                let count = number(&replies[0]).unwrap_or(0);
                if count != acknowledged + 1 {
                    let words = format!("INCR {key} answered {count} after {acknowledged}");
                    strict.account.on_wrong(Wrong::Lost, words);
                }
                acknowledged = count;
            }
            Told::Refused(_) => std::thread::sleep(REST),
            Told::Unknown => {
                strict.leave(Left {
                    key,
                    least: acknowledged,
                    most: acknowledged + 1,
                });
                (generation, acknowledged) = (generation + 1, 0);
            }
        }
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reader_may_see() {
        assert!(may_be(Some(3), (3, 4), 0));
        assert!(may_be(Some(4), (3, 4), 0));
        assert!(!may_be(Some(2), (3, 4), 0));
        assert!(!may_be(None, (3, 4), 0));
        // Nothing is there before the first acknowledgement, or after a deletion since the last.
        assert!(may_be(Some(0), (0, 1), 0));
        assert!(!may_be(Some(0), (3, 4), 2));
        assert!(may_be(Some(0), (3, 4), 4));
    }

    #[test]
    fn the_number_of_a_value_is_its_first_word() {
        assert_eq!(number(&Reply::Bulk(b"12 xxx".to_vec())), Some(12));
        assert_eq!(number(&Reply::Nil), Some(0));
        assert_eq!(number(&Reply::Simple("OK".into())), None);
    }
}
