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
//! until it ends; so its duration is limited.

use super::super::Front;
use super::super::connection::Connection;
use super::super::session::Session;
use super::Transaction;
use super::savepoints::Kept;
use rufous_base::{ConnId, Now};
use rufous_command::{Failure, Reply};
use rufous_kernel::replicate::level::{Level, read_committed};
use rufous_kernel::replicate::transaction::Transaction as Open;
use rufous_kernel::worker::Stamp;
use std::borrow::Cow;
use std::collections::BTreeMap;

const TOO_LONG: Failure = Failure(Cow::Borrowed(
    "ERR a transaction of level read-uncommitted ends after 60 seconds",
));
const WRITES_STAY: Failure = Failure(Cow::Borrowed(
    "ERR the transaction is over, but its writes stay: at level read-uncommitted they are done at once",
));

/// Limit on the duration of a transaction that writes at once, in microseconds: deletions are
/// remembered so long, as it may still write under the time of its beginning.
const LONGEST_US: u64 = 60_000_000;

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

/// The promises for transactions of this worker, and when they end.
pub(super) type Promised = BTreeMap<u64, (ConnId, u64)>;

impl Transaction {
    pub(crate) fn is_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// Bytes of its copies.
    pub(super) fn copies_bytes(&self) -> usize {
        self.begun.as_ref().map_or(0, |begun| begun.open.bytes())
    }
}

impl Session<'_> {
    /// `BEGIN`, with the level of this name, if there is one.
    pub(crate) fn begin(
        &mut self,
        level: Option<&[u8]>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Failure> {
        let level = match level {
            None => read_committed::LEVEL.name.parse().ok(),
            Some(name) => level_of(name),
        };
        let level: Level = level.ok_or(Failure::from(
            "ERR unknown isolation level: use serializable, item-cut, read-committed or read-uncommitted",
        ))?;
        let (now, conn) = (self.now, self.conn);
        let open = self.local.front.kernel.open_transaction(now, level);
        let at_once = open.writes_at_once();
        let transaction = &self.connection()?.transaction;
        let refused = if transaction.open {
            Some("ERR BEGIN inside MULTI is not allowed")
        } else if transaction.is_begun() {
            Some("ERR a transaction is already open: end it with COMMIT or ROLLBACK")
        } else if at_once && !transaction.watched.is_empty() {
            Some(
                "ERR WATCH has no meaning for a transaction of level read-uncommitted: its writes are done at once",
            )
        } else {
            None
        };
        if let Some(why) = refused {
            self.local.front.kernel.close_transaction(open);
            return Err(why.into());
        }
        let begun = Begun {
            open,
            since_us: now.mono_us,
            keyspaces: self.local.front.kernel.keyspaces().version(),
            given_up: None,
            kept: Vec::new(),
            wrote: false,
            stamp: None,
            promise: None,
        };
        self.connection()?.transaction.begun = Some(Box::new(begun));
        if !at_once || !self.local.front.kernel.placement().has_lattice() {
            reply.ok();
            return Ok(());
        }
        let name = self.local.front.transactions.name(self.local.front.id());
        self.ask_all(
            reply,
            move |local, now| local.front.kernel.promise_to(now, name),
            move |local, times, reply| {
                local.front.begin_at_once(now, conn, name, &times);
                reply.ok();
            },
        );
        Ok(())
    }

    /// `ROLLBACK`.
    pub(crate) fn rollback(&mut self) -> Result<(), Failure> {
        let Some(begun) = &self.connection()?.transaction.begun else {
            return Err("ERR ROLLBACK without BEGIN".into());
        };
        let stays = begun.wrote;
        self.local.front.end_transaction(self.conn);
        match stays {
            true => Err(WRITES_STAY),
            false => Ok(()),
        }
    }

    /// `COMMIT`. The reply is that of `EXEC`.
    pub(crate) fn commit(&mut self, reply: &mut Reply<'_>) -> Result<(), Failure> {
        let Some(begun) = &self.connection()?.transaction.begun else {
            return Err("ERR COMMIT without BEGIN".into());
        };
        if let Some(why) = &begun.given_up {
            let failure = match begun.wrote {
                true => WRITES_STAY,
                false => super::discarded(why),
            };
            self.local.front.end_transaction(self.conn);
            return Err(failure);
        }
        self.run_kept(reply)
    }
}

fn level_of(text: &[u8]) -> Option<Level> {
    Level::of_transaction(std::str::from_utf8(text).ok()?)
}

impl Front {
    pub(crate) fn open_transactions(&self) -> usize {
        let begun = |c: &&Connection| c.transaction.is_begun();
        self.connections().filter(begun).count()
    }

    pub(super) fn begun(&mut self, conn: ConnId) -> Option<&mut Begun> {
        self.connection(conn)?.transaction.begun.as_deref_mut()
    }

    /// The command that ends a transaction.
    pub(super) fn end_of_transaction(&self, begun: bool) -> u16 {
        let name = if begun { &b"commit"[..] } else { b"exec" };
        self.table.find(name).unwrap_or_default()
    }

    /// Takes out the transaction of a connection, for [`Front::put_begun`].
    pub(super) fn take_begun(&mut self, conn: ConnId) -> Option<Box<Begun>> {
        self.connection(conn)?.transaction.begun.take()
    }

    pub(super) fn put_begun(&mut self, conn: ConnId, begun: Box<Begun>) {
        if let Some(connection) = self.connection(conn) {
            connection.transaction.begun = Some(begun);
        }
    }

    /// Gives up a transaction. Returns the reply to the command that it cannot execute.
    pub(in crate::front) fn give_up(&mut self, now: Now, conn: ConnId, why: Failure) -> Failure {
        let failure = given_up(&why);
        let Some(level) = self.begun(conn).map(|begun| begun.open.level()) else {
            return failure;
        };
        let empty = self.kernel.open_transaction(now, level);
        let Some(connection) = self.connections.get(conn) else {
            return failure;
        };
        let transaction = &mut connection.transaction;
        if let Some(kept) = transaction.forget_kept() {
            self.transactions.keep(kept);
        }
        let Some(begun) = transaction.begun.as_deref_mut() else {
            return failure;
        };
        let copies = std::mem::replace(&mut begun.open, empty);
        begun.given_up = Some(why);
        begun.kept.clear();
        let promise = begun.promise.take();
        self.kernel.close_transaction(copies);
        self.redeem(promise);
        failure
    }

    /// All workers have promised.
    fn begin_at_once(&mut self, now: Now, conn: ConnId, name: u64, times: &[u64]) {
        let time = times.iter().max().copied().unwrap_or_default();
        let stamp = self.kernel.stamp_above(now, time);
        match self.begun(conn).filter(|begun| begun.given_up.is_none()) {
            Some(begun) => {
                (begun.stamp, begun.promise) = (Some(stamp), Some(name));
                let until = now.mono_us + LONGEST_US;
                self.transactions.promised.insert(name, (conn, until));
            }
            None => self.redeem(Some(name)),
        }
    }

    fn redeem(&mut self, promise: Option<u64>) {
        let Some(name) = promise else { return };
        self.transactions.promised.remove(&name);
        self.kernel.redeem_of(name);
        self.out
            .tell_others(move |front, _| front.kernel.redeem_of(name));
    }

    /// Gives up transactions that write at once and have lasted too long.
    pub(in crate::front) fn end_long_transactions(&mut self, now: Now) {
        let promised = self.transactions.promised.values();
        let due = promised.filter(|(_, until)| *until <= now.mono_us);
        let due: Vec<ConnId> = due.map(|(conn, _)| *conn).collect();
        for conn in due {
            self.give_up(now, conn, TOO_LONG);
        }
    }

    /// Releases the resources of an ended transaction.
    pub(super) fn end_begun(&mut self, begun: Begun) {
        self.redeem(begun.promise);
        self.kernel.close_transaction(begun.open);
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
