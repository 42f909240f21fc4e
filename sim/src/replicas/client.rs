//! Clients of registers: what each keeps for its level, and what it does next.

use super::history::Value;
use super::plan::{Mode, Plan};
use rufous_kernel::replicate::level::Level;
use rufous_kernel::replicate::session::Session;
use rufous_kernel::replicate::transaction::Transaction as Open;
use rufous_lattice::Stamp;

/// The name of a register.
pub fn name_of(key: usize) -> Vec<u8> {
    format!("k{key}").into_bytes()
}

/// A value as it is written; now and then one that fits no record.
pub fn text_of(value: Value) -> Vec<u8> {
    let mut text = format!("v{value}-").into_bytes();
    if value.is_multiple_of(13) {
        text.resize(5000, b'x');
    }
    text
}

/// The value that was read.
pub fn value_of(text: &[u8]) -> Option<Value> {
    let digits = text.strip_prefix(b"v")?.split(|b| *b == b'-').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// An open transaction, at one node.
#[derive(Debug)]
pub struct Transaction {
    pub number: usize,
    pub at: usize,
    pub left: u64,
    /// The next of its stamps, where it writes at once.
    pub stamp: Option<Stamp>,
    pub open: Open,
    /// What it has written to its copies, in order, and the events.
    pub kept: Vec<(usize, Value)>,
    pub pending: Vec<usize>,
}

#[derive(Debug)]
pub struct Client {
    /// Of the history; another one after a crash.
    pub session: usize,
    pub home: usize,
    /// Where its last operation was.
    pub last: Option<usize>,
    pub keeps: Session,
    pub transaction: Option<Transaction>,
    /// Operations that are left for this round.
    pub left: u64,
    /// It waits for a reply.
    pub waits: bool,
}

impl Client {
    pub fn new(plan: &Plan, session: usize, home: usize) -> Self {
        Self {
            session,
            home,
            last: None,
            keeps: Session::new(level(plan.mode)),
            transaction: None,
            left: 0,
            waits: false,
        }
    }
}

/// The level of a mode.
pub fn level(mode: Mode) -> Level {
    // invariant: modes name levels that there are
    mode.level().parse().expect("a level")
}
