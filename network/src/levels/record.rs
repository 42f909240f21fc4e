//! What the two clients of a scene asked and what they were answered, in one order: a write counts from when it was
//! asked for, a read from when its reply came.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::isolation::Transaction;

/// What an operation does, or what a read found. No two writes have the same number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    Set(u64),
    Got(Option<u64>),
    Add(u64),
    Remove(u64),
    Members(BTreeSet<u64>),
    /// It was answered that nothing was done.
    Nothing,
}

/// One operation on a text or a set.
#[derive(Clone, Debug)]
pub struct Event {
    pub session: usize,
    /// Where it was asked.
    pub node: usize,
    pub at_ms: u64,
    pub key: u64,
    pub deed: Deed,
    /// A write without a reply may or may not have been executed.
    pub replied: bool,
}

/// What is counted of the clients of a scene.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    pub operations: u64,
    /// Changes of the connection, and those to another node.
    pub moves: u64,
    pub crossings: u64,
    /// Moves with a token.
    pub resumed: u64,
    /// `SESSION RESUME` that was answered `BEHIND`.
    pub behind: u64,
    /// `SESSION TOKEN` that was answered `BEHIND`.
    pub late_tokens: u64,
    /// Sessions that ended because the token of their last operation was lost.
    pub ended: u64,
    /// The longest wait for `SESSION RESUME`.
    pub longest: Duration,
    /// Errors by their codes.
    pub errors: BTreeMap<String, u64>,
}

impl Counts {
    pub fn error(&mut self, text: &str) {
        let code = text.split(' ').next().unwrap_or_default();
        *self.errors.entry(code.to_owned()).or_default() += 1;
    }

    fn add(&mut self, other: Counts) {
        self.operations += other.operations;
        self.moves += other.moves;
        self.crossings += other.crossings;
        self.resumed += other.resumed;
        self.behind += other.behind;
        self.late_tokens += other.late_tokens;
        self.ended += other.ended;
        self.longest = self.longest.max(other.longest);
        for (code, count) in other.errors {
            *self.errors.entry(code).or_default() += count;
        }
    }
}

/// See the module's description.
pub struct Record {
    began: Instant,
    events: Mutex<Vec<Event>>,
    transactions: Mutex<Vec<Transaction>>,
    counts: Mutex<Counts>,
    /// Replies that make no sense.
    odd: Mutex<Vec<String>>,
    sessions: AtomicUsize,
    numbers: AtomicU64,
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for Record {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            events: Mutex::default(),
            transactions: Mutex::default(),
            counts: Mutex::default(),
            odd: Mutex::default(),
            // That of the initial values is 0.
            sessions: AtomicUsize::new(1),
            numbers: AtomicU64::new(1),
        }
    }
}

impl Record {
    pub fn new_session(&self) -> usize {
        self.sessions.fetch_add(1, Ordering::SeqCst)
    }

    /// Each is given once, later ones are higher.
    pub fn new_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::SeqCst)
    }

    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Notes an operation; its place.
    pub fn note(&self, session: usize, node: usize, key: u64, deed: Deed) -> usize {
        let replied = matches!(deed, Deed::Got(_) | Deed::Members(_));
        let mut events = locked(&self.events);
        events.push(Event {
            session,
            node,
            at_ms: self.elapsed().as_millis() as u64,
            key,
            deed,
            replied,
        });
        events.len() - 1
    }

    pub fn on_reply(&self, at: usize) {
        if let Some(event) = locked(&self.events).get_mut(at) {
            event.replied = true;
        }
    }

    pub fn on_nothing_done(&self, at: usize) {
        if let Some(event) = locked(&self.events).get_mut(at) {
            event.deed = Deed::Nothing;
        }
    }

    /// A write without a reply is of no session: the client's token does not cover it.
    pub fn on_no_reply(&self, at: usize) {
        let alone = self.new_session();
        if let Some(event) = locked(&self.events).get_mut(at) {
            event.session = alone;
        }
    }

    pub fn note_transaction(&self, transaction: Transaction) {
        locked(&self.transactions).push(transaction);
    }

    pub fn add(&self, counts: Counts) {
        locked(&self.counts).add(counts);
    }

    pub fn on_odd(&self, text: String) {
        locked(&self.odd).push(text);
    }

    /// Operations and transactions so far.
    pub fn len(&self) -> usize {
        locked(&self.events).len() + locked(&self.transactions).len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn events(&self) -> Vec<Event> {
        locked(&self.events).clone()
    }

    pub fn transactions(&self) -> Vec<Transaction> {
        locked(&self.transactions).clone()
    }

    pub fn counts(&self) -> Counts {
        locked(&self.counts).clone()
    }

    pub fn odd(&self) -> Vec<String> {
        locked(&self.odd).clone()
    }

    /// All of it, a line for each operation.
    pub fn lines(&self) -> String {
        let mut text = String::new();
        for (at, event) in locked(&self.events).iter().enumerate() {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{at}: {event:?}");
        }
        for transaction in locked(&self.transactions).iter() {
            let _ = writeln!(text, "{transaction:?}");
        }
        text
    }
}
