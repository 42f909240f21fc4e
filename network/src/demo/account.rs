//! What clients saw while a fault lasted, and what of it is wrong.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Wrong results that are kept in words.
const KEPT: usize = 5;

/// The number of clients that follow the cluster, beside the numbers of nodes.
pub const FOLLOWS: usize = 0;

/// What no client may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wrong {
    /// An acknowledged write of a strict key is gone.
    Lost,
    /// A part of a transaction is visible without the rest.
    Torn,
    /// A read shows less than an earlier acknowledgement.
    Stale,
    /// An acknowledged write of a lattice key is gone.
    Undone,
}

/// What clients of one scene saw.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub answered: u64,
    /// The longest wait of a request at a healthy node, whatever its reply.
    pub longest: Duration,
    /// Error replies of healthy nodes, by code: nothing was executed.
    pub refused: BTreeMap<String, u64>,
    /// Requests at healthy nodes whose outcome is unknown.
    pub unknown: u64,
    pub wrong: BTreeMap<Wrong, u64>,
    pub examples: Vec<String>,
}

impl Tally {
    pub fn of(&self, wrong: Wrong) -> u64 {
        self.wrong.get(&wrong).copied().unwrap_or(0)
    }

    pub fn refusals(&self) -> u64 {
        self.refused.values().sum()
    }

    pub fn is_right(&self) -> bool {
        self.wrong.is_empty()
    }
}

/// Shared by all clients of a demonstration.
#[derive(Debug, Default)]
pub struct Account {
    /// Bit n: node n has a fault, and clients that are bound to it are not counted. Bit 0 is that of
    /// clients that follow the cluster.
    sick: AtomicU64,
    tally: Mutex<Tally>,
}

/// A request that is under way.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    at: Instant,
    was_sick: bool,
}

/// The outcome of a request, as far as it is counted.
#[derive(Clone, Copy, Debug)]
pub enum Ended<'a> {
    Answered,
    Refused(&'a str),
    Unknown,
}

impl Account {
    pub fn set_sick(&self, nodes: &[usize]) {
        let bits = nodes.iter().fold(0, |bits, node| bits | 1 << node);
        self.sick.store(bits, Ordering::SeqCst);
    }

    fn is_sick(&self, node: usize) -> bool {
        self.sick.load(Ordering::SeqCst) & 1 << node != 0
    }

    pub fn on_ask(&self, node: usize) -> Asked {
        Asked {
            at: Instant::now(),
            was_sick: self.is_sick(node),
        }
    }

    pub fn on_end(&self, asked: Asked, node: usize, ended: Ended<'_>) {
        let took = asked.at.elapsed();
        let is_sick = asked.was_sick || self.is_sick(node);
        let mut tally = self.tally();
        if let Ended::Answered = ended {
            tally.answered += 1;
        }
        if is_sick {
            return;
        }
        tally.longest = tally.longest.max(took);
        match ended {
            Ended::Answered => {}
            Ended::Refused(code) => *tally.refused.entry(code.to_owned()).or_default() += 1,
            Ended::Unknown => tally.unknown += 1,
        }
    }

    pub fn on_wrong(&self, wrong: Wrong, words: String) {
        let mut tally = self.tally();
        *tally.wrong.entry(wrong).or_default() += 1;
        if tally.examples.len() < KEPT {
            tally.examples.push(format!("{wrong:?}: {words}"));
        }
    }

    pub fn answered(&self) -> u64 {
        self.tally().answered
    }

    /// Returns what was seen since the last call, and starts again at zero.
    pub fn take(&self) -> Tally {
        std::mem::take(&mut *self.tally())
    }

    fn tally(&self) -> std::sync::MutexGuard<'_, Tally> {
        // A client that panicked ends the demonstration elsewhere; what it counted stays right.
        self.tally
            .lock()
            .unwrap_or_else(|broken| broken.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_a_sick_node_are_not_counted_but_wrong_results_are() {
        let account = Account::default();
        let healthy = account.on_ask(1);
        let sick = account.on_ask(2);
        account.set_sick(&[2]);
        let follows = account.on_ask(FOLLOWS);
        account.on_end(healthy, 1, Ended::Refused("CLUSTERDOWN"));
        account.on_end(sick, 2, Ended::Refused("MISCONF"));
        account.on_end(follows, FOLLOWS, Ended::Unknown);
        account.on_wrong(Wrong::Torn, "a, not b".to_owned());
        let tally = account.take();
        assert_eq!(tally.refusals(), 1);
        assert_eq!(tally.unknown, 1);
        assert_eq!(tally.of(Wrong::Torn), 1);
        assert!(!tally.is_right());
        assert!(account.take().is_right());
    }

    #[test]
    fn a_request_that_began_before_its_node_healed_is_not_counted() {
        let account = Account::default();
        account.set_sick(&[1]);
        let asked = account.on_ask(1);
        account.set_sick(&[]);
        account.on_end(asked, 1, Ended::Unknown);
        assert_eq!(account.take().unknown, 0);
    }
}
