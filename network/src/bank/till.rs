//! What all clients of the bank share: what they paid, and what is counted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use super::ledger::{Came, Payment, Wrong};

/// Wrong results that are kept in words.
const KEPT: usize = 5;

/// What clients of one scene saw.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub paid: u64,
    /// Purchases that the card does not cover.
    pub declined: u64,
    /// Purchases whose card was changed after it was read.
    pub changed: u64,
    pub audits: u64,
    /// The longest wait for replies to one packet, whatever they are.
    pub longest: Duration,
    /// Errors and lost connections, by the client's node and kind.
    pub errors: BTreeMap<(usize, String), u64>,
    /// Payments whose outcome is unknown.
    pub unknown: u64,
    pub wrong: BTreeMap<Wrong, u64>,
    pub examples: Vec<String>,
}

impl Tally {
    pub fn of(&self, wrong: Wrong) -> u64 {
        self.wrong.get(&wrong).copied().unwrap_or(0)
    }

    /// Whether a client of a node that has no fault met an error.
    pub fn has_errors_beside(&self, sick: &[usize]) -> bool {
        self.errors.keys().any(|(node, _)| !sick.contains(node))
    }
}

/// See the module's description.
#[derive(Debug)]
pub struct Till {
    began: Instant,
    pub ends: AtomicBool,
    /// Bit n: node n does nothing, and does not know it.
    still: AtomicU64,
    /// Clients work while they hold it for reading.
    open: RwLock<()>,
    tally: Mutex<Tally>,
    payments: Mutex<Vec<Payment>>,
    done: AtomicU64,
}

impl Default for Till {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            ends: AtomicBool::new(false),
            still: AtomicU64::new(0),
            open: RwLock::default(),
            tally: Mutex::default(),
            payments: Mutex::default(),
            done: AtomicU64::new(0),
        }
    }
}

impl Till {
    /// Waits while the till is closed. To be held for one transaction.
    pub fn enter(&self) -> RwLockReadGuard<'_, ()> {
        self.open
            .read()
            .unwrap_or_else(|broken| broken.into_inner())
    }

    /// Waits until no client works, and lets none work meanwhile.
    pub fn close(&self) -> RwLockWriteGuard<'_, ()> {
        self.open
            .write()
            .unwrap_or_else(|broken| broken.into_inner())
    }

    pub fn has_ended(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }

    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub fn set_still(&self, nodes: &[usize]) {
        let bits = nodes.iter().fold(0, |bits, node| bits | 1 << node);
        self.still.store(bits, Ordering::SeqCst);
    }

    pub fn stands_still(&self, node: usize) -> bool {
        self.still.load(Ordering::SeqCst) & 1 << node != 0
    }

    pub fn on_wait(&self, took: Duration) {
        let mut tally = self.tally();
        tally.longest = tally.longest.max(took);
    }

    pub fn on_error(&self, node: usize, kind: &str) {
        let kind = (node, kind.to_owned());
        *self.tally().errors.entry(kind).or_default() += 1;
    }

    pub fn on_wrong(&self, wrong: Wrong, words: String) {
        let mut tally = self.tally();
        *tally.wrong.entry(wrong).or_default() += 1;
        if tally.examples.len() < KEPT {
            tally.examples.push(format!("{wrong:?}: {words}"));
        }
    }

    pub fn on_payment(&self, payment: Payment) {
        let mut tally = self.tally();
        match payment.came {
            Came::Done => tally.paid += 1,
            Came::Refused => {}
            Came::Unknown => tally.unknown += 1,
        }
        drop(tally);
        if payment.came == Came::Done {
            self.done.fetch_add(1, Ordering::Relaxed);
        }
        self.payments().push(payment);
    }

    pub fn on_declined(&self) {
        self.tally().declined += 1;
    }

    pub fn on_changed(&self) {
        self.tally().changed += 1;
    }

    pub fn on_audit(&self) {
        self.tally().audits += 1;
    }

    /// Payments that were acknowledged since the beginning.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Returns what was seen since the last call, and starts again at zero.
    pub fn take_tally(&self) -> Tally {
        std::mem::take(&mut *self.tally())
    }

    pub fn take_payments(&self) -> Vec<Payment> {
        std::mem::take(&mut *self.payments())
    }

    fn tally(&self) -> MutexGuard<'_, Tally> {
        // A client that panicked ends the demonstration elsewhere; what it counted stays right.
        { self.tally.lock() }.unwrap_or_else(|broken| broken.into_inner())
    }

    fn payments(&self) -> MutexGuard<'_, Vec<Payment>> {
        { self.payments.lock() }.unwrap_or_else(|broken| broken.into_inner())
    }
}
