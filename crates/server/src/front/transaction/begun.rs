//! `BEGIN … COMMIT | ROLLBACK`: transactions whose commands are answered one by one, and that hold
//! no keys between commands.
//!
//! The transaction's level decides where a command runs (see
//! `rufous_kernel::replicate::transaction`). Of the commands that ran on copies those that wrote
//! are kept, and `COMMIT` runs them as `EXEC` runs the commands queued by `MULTI`. An error is the
//! reply to its command and has no other effect. Only a transaction that becomes too large, or
//! cannot go on, is given up: it is over then, but still has to be ended, so that commands which
//! its client has already sent do not run outside of it.
//!
//! A transaction that writes at once uses one time for all writes, which other writes may have
//! passed meanwhile. Every worker promises at its beginning to send no state with a later time
//! until it ends; so its duration is limited. One that was begun without a level may turn out to be
//! such a transaction, where there are keyspaces of that level: it has the promise until it is known
//! to be none.

use super::Transaction;
use super::savepoints::Kept;
use rufous_base::Now;
use rufous_command::Failure;
use rufous_kernel::replicate::level::Level;
use rufous_kernel::replicate::transaction::Transaction as Open;
use rufous_kernel::worker::Stamp;
use std::borrow::Cow;

pub(super) const TOO_LONG: Failure = Failure(Cow::Borrowed(
    "ERR a transaction of level read-uncommitted ends after 60 seconds",
));
pub(super) const WRITES_STAY: Failure = Failure(Cow::Borrowed(
    "ERR the transaction is over, but its writes stay: at level read-uncommitted they are done at once",
));

/// A connection's transaction that was begun with `BEGIN`.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(super) open: Open,
    /// When it began.
    pub(super) since_us: u64,
    /// The version of the table of keyspaces.
    pub(super) keyspaces: u64,
    /// Why it was given up: it can only be ended.
    pub(super) given_up: Option<Failure>,
    /// For each savepoint of it.
    pub(super) kept: Vec<Kept>,
    /// It has written at once.
    pub(super) wrote: bool,
    /// Of a transaction that writes at once: the stamp of its next write on lattice keys, and its
    /// name at the workers.
    pub(super) stamp: Option<Stamp>,
    pub(super) promise: Option<u64>,
}

impl Begun {
    pub(super) fn new(now: Now, open: Open, keyspaces: u64) -> Self {
        Self {
            open,
            since_us: now.mono_us,
            keyspaces,
            given_up: None,
            kept: Vec::new(),
            wrote: false,
            stamp: None,
            promise: None,
        }
    }

    /// Its promise, if it will not write at once.
    pub(super) fn take_spare_promise(&mut self) -> Option<u64> {
        if self.open.isolation().may_write_at_once() {
            return None;
        }
        self.stamp = None;
        self.promise.take()
    }

    /// Gives it up: only `empty` is left of its copies. Returns them, and its promise.
    pub(super) fn give_up(&mut self, why: Failure, empty: Open) -> (Open, Option<u64>) {
        let copies = std::mem::replace(&mut self.open, empty);
        self.given_up = Some(why);
        self.kept.clear();
        (copies, self.promise.take())
    }
}

impl Transaction {
    pub(crate) fn is_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// Bytes of its copies.
    pub(super) fn copies_bytes(&self) -> usize {
        self.begun.as_ref().map_or(0, |begun| begun.open.bytes())
    }
}

/// The reply to commands of a transaction that was given up.
pub(super) fn given_up(why: &Failure) -> Failure {
    format!(
        "{}: the transaction is aborted, end it with ROLLBACK",
        why.text()
    )
    .into()
}

/// The level of this name.
pub(super) fn level_of(text: &[u8]) -> Option<Level> {
    Level::of_transaction(std::str::from_utf8(text).ok()?)
}
