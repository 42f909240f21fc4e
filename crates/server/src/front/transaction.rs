//! Transactions: `MULTI`, `EXEC` and the commands between them; `WATCH`.
//!
//! Commands are queued at the connection. `EXEC` runs them in one step if all their keys are this
//! worker's and free; otherwise the kernel first holds the keys at their owners
//! (`rufous_kernel::worker::spanning`), and the commands run once all keys are held. Either way this
//! module runs the list: commands on data through the kernel, others as usual. A command that asks
//! other workers interrupts the list until they have answered; the keys stay held meanwhile.
//!
//! `BEGIN` is in `begun`: its commands run as they arrive, and `COMMIT` runs those that were kept. `savepoints` are points to
//! which it can go back.
//!
//! The owner of a watched key records its watchers, and is asked while it holds the key. Every end
//! of a transaction ends the watches.

pub(crate) mod apart;
pub(crate) mod begun;
pub(crate) mod listed;
mod open;
mod plan;
mod promises;
mod route;
mod run;
mod savepoints;
mod sessions;
mod step;
#[cfg(test)]
mod tests;
pub(crate) mod token;
mod undoing;
mod watching;

pub(crate) use open::Transactions;

use super::connection::Connection;
use crate::command::CommandTable;
use crate::config::Config;
use apart::Far;
use begun::Begun;
use rufous_base::{Args, Now};
use rufous_command::{DataCommands, Failure, Flags, OUT_OF_MEMORY, Spec, options, unwritable};
use rufous_kernel::batch::{Header, Request};
use rufous_kernel::lock::KeyName;
use rufous_kernel::shard::WatchId;
use rufous_kernel::{Batch, Worker};
use std::borrow::Cow;
use std::collections::BTreeSet;

const TOO_LARGE: Failure = Failure(Cow::Borrowed(
    "ERR the transaction is larger than client-query-buffer-limit allows",
));
const WATCHES_TOO_MUCH: Failure = Failure(Cow::Borrowed(
    "ERR the watched keys are larger than client-query-buffer-limit allows",
));
/// Offsets in a batch have 32 bits.
const LARGEST_QUEUE: usize = 1 << 31;

/// A connection's queued commands and watches.
#[derive(Debug, Default)]
pub struct Transaction {
    /// `MULTI` was given.
    pub open: bool,
    /// A command could not be queued: `EXEC` will be refused.
    pub aborted: bool,
    pub(super) queued: Option<Box<Batch>>,
    /// Bytes of the queue.
    bytes: usize,
    /// The flags of all queued commands together.
    flags: Flags,
    /// A queued command that may take more memory.
    grows: Option<u16>,
    /// The database that the queued commands have selected.
    db: Option<u8>,
    pub watched: BTreeSet<KeyName>,
    /// Those of them that slots of any node record, each with what its slot has told.
    far: Far,
    watched_bytes: usize,
    /// `BEGIN` was given.
    begun: Option<Box<Begun>>,
    /// Its outcome is kept: an error undoes it.
    has_token: bool,
}

/// The watches of a connection.
struct Watched {
    here: BTreeSet<KeyName>,
    far: Far,
}

impl Transaction {
    /// The number of queued commands.
    pub fn len(&self) -> usize {
        self.queued.as_ref().map_or(0, |batch| batch.requests.len())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the client has begun one and not ended it.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Whether keys are watched, or may be.
    pub(crate) fn watches(&self) -> bool {
        !self.watched.is_empty() || !self.far.is_empty()
    }

    /// Bytes of the queue and of copies.
    pub fn bytes(&self) -> usize {
        self.bytes + self.copies_bytes()
    }

    /// The flags of all queued commands, and one that may take memory.
    fn changes(&self) -> (Flags, Option<u16>) {
        (self.flags, self.grows)
    }

    /// Makes `EXEC` fail. The queue is dropped.
    pub(super) fn abort(&mut self) {
        if self.open {
            self.aborted = true;
            self.forget_kept();
        }
    }

    /// Adds a command.
    fn keep(
        &mut self,
        header: Header,
        spec: &Spec,
        args: Args<'_>,
        spare: &mut Option<Box<Batch>>,
    ) {
        self.bytes += size_of_request(&args);
        self.flags = self.flags.or(spec.flags);
        let grows = spec.flags.has(Flags::DENYOOM);
        self.grows = self.grows.or(grows.then_some(header.command));
        let queued = self
            .queued
            .get_or_insert_with(|| spare.take().unwrap_or_default());
        queued.push(header, args);
    }

    /// Queues a command for `EXEC`, unless the transaction would have more bytes than `limit`.
    pub(super) fn queue(
        &mut self,
        mut header: Header,
        spec: &Spec,
        args: Args<'_>,
        limit: usize,
        spare: &mut Option<Box<Batch>>,
    ) -> Result<(), Failure> {
        if self.aborted {
            return Ok(());
        }
        if self.bytes + size_of_request(&args) > limit {
            self.abort();
            return Err(TOO_LARGE);
        }
        header.db = self.db.unwrap_or(header.db);
        if spec.flags.has(Flags::SELECT) {
            self.db = options::database(args.get(1)).ok().or(self.db);
        }
        self.keep(header, spec, args, spare);
        Ok(())
    }

    /// Its watches, which end.
    fn take_watches(&mut self) -> Watched {
        self.watched_bytes = 0;
        Watched {
            here: std::mem::take(&mut self.watched),
            far: std::mem::take(&mut self.far),
        }
    }

    fn forget_kept(&mut self) -> Option<Box<Batch>> {
        (self.bytes, self.flags, self.grows) = (0, Flags::NONE, None);
        self.queued.take()
    }
}

impl Connection {
    /// The flags of a command, and for `EXEC` those of all that it will run.
    pub fn flags_with_queued(&self, spec: &Spec) -> Flags {
        if spec.flags.has(Flags::EXEC) || spec.flags.has(Flags::COMMIT) {
            return spec.flags.or(self.transaction.flags);
        }
        spec.flags
    }

    /// Whether a command is queued for `EXEC`.
    pub(super) fn queues(&self, spec: &Spec) -> bool {
        self.transaction.open && !spec.flags.has(Flags::AT_ONCE)
    }

    /// The id of the watcher at the owners of keys.
    fn watcher(&self) -> WatchId {
        WatchId(self.client_id)
    }
}

/// The reply to an `EXEC` that is refused.
fn discarded(why: &Failure) -> Failure {
    let text = why.text();
    let why = text.strip_prefix("ERR ").unwrap_or(text);
    format!("EXECABORT Transaction discarded because of: {why}").into()
}

/// Why changes are refused at present, if commands with these flags make any.
pub(super) fn refusal_of_changes(
    kernel: &mut Worker<DataCommands>,
    now: Now,
    flags: Flags,
    grows: Option<u16>,
) -> Option<Failure> {
    if let Some(why) = kernel.refuses_writes()
        && flags.has(Flags::WRITE)
    {
        return Some(unwritable(why));
    }
    let is_full = grows.is_some_and(|command| !kernel.admits(now, command));
    is_full.then_some(OUT_OF_MEMORY)
}

/// Bytes that a queued request takes.
fn size_of_request(args: &Args<'_>) -> usize {
    args.iter_from(0).map(|arg| arg.len() + 8).sum::<usize>() + size_of::<Request>()
}

/// The command that ends a transaction.
fn end_of(table: &CommandTable, begun: bool) -> u16 {
    let name = if begun { &b"commit"[..] } else { b"exec" };
    table.find(name).unwrap_or_default()
}

/// Bytes that a transaction may have.
fn limit_of(config: &Config) -> usize {
    config.client_query_buffer_limit.min(LARGEST_QUEUE)
}

#[cfg(test)]
mod queue_tests {
    use super::super::connection::Connection;
    use super::super::testing::{id, info};
    use super::*;

    /// Queues a command; returns its database.
    fn queue(transaction: &mut Transaction, text: &str, limit: usize) -> Result<u8, Failure> {
        let table = crate::command::table();
        let (mut spans, mut at) = (Vec::new(), 0);
        for word in text.split(' ') {
            spans.push((at, word.len() as u32));
            at += word.len() as u32 + 1;
        }
        let args = Args::new(text.as_bytes(), &spans, &mut []);
        let command = table.find(args.get(0)).expect("a command");
        let header = Connection::new(id(0, 1), 1, info(), 0).header(command, false, None);
        let (spec, mut spare) = (table.spec(command), None);
        transaction.queue(header, spec, args, limit, &mut spare)?;
        let queued = transaction.queued.as_deref();
        let last = queued.and_then(|batch| batch.requests.last());
        Ok(last.map_or(0, |request| request.header.db))
    }

    fn open() -> Transaction {
        Transaction {
            open: true,
            ..Transaction::default()
        }
    }

    #[test]
    fn commands_after_select_run_in_its_database() {
        let mut transaction = open();
        assert_eq!(queue(&mut transaction, "set a 1", 1000), Ok(0));
        assert_eq!(queue(&mut transaction, "select 3", 1000), Ok(0));
        assert_eq!(queue(&mut transaction, "get a", 1000), Ok(3));
        let (flags, grows) = transaction.changes();
        assert!(flags.has(Flags::WRITE) && grows.is_some());
        assert_eq!(transaction.len(), 3);
    }

    #[test]
    fn a_queue_that_is_too_large_is_dropped() {
        let mut transaction = open();
        let one = size_of::<Request>() + 40;
        assert_eq!(queue(&mut transaction, "get a", one), Ok(0));
        assert_eq!(queue(&mut transaction, "get a", one), Err(TOO_LARGE));
        assert!(transaction.aborted && transaction.is_empty());
        // `EXEC` will be refused; until then nothing is kept.
        assert_eq!(queue(&mut transaction, "get a", one), Ok(0));
        assert!(transaction.is_empty() && transaction.bytes() == 0);
    }
}
