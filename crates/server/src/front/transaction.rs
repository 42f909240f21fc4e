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
mod plan;
mod run;
mod savepoints;
mod step;
#[cfg(test)]
mod tests;
pub(crate) mod token;
mod undoing;

use super::Front;
use super::connection::Connection;
use super::monitor;
use super::session::Session;
use apart::{Apart, Far};
use begun::{Begun, Promised};
use rufous_base::{Args, ConnId, Now, Output, WorkerId};
use rufous_cluster::figures::WaitFigures;
use rufous_command::{
    DataCommands, Failure, Flags, OUT_OF_MEMORY, Reply, Spec, options, unwritable,
};
use rufous_kernel::batch::{Header, Request};
use rufous_kernel::lock::KeyName;
use rufous_kernel::shard::WatchId;
use rufous_kernel::{Batch, Worker};
use run::Running;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use step::Step;

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

/// The transactions in progress.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    running: BTreeMap<u64, Running>,
    apart: apart::Open,
    /// Commands of open ones whose keys are to be held.
    steps: BTreeMap<u64, Step>,
    promised: Promised,
    names: u64,
    next: u64,
    /// Answers to commands in transactions that asked other workers.
    answers: Vec<(u64, Output)>,
    /// Reused for the next one.
    spare: Option<Box<Batch>>,
}

impl Transactions {
    /// How long clients have waited for outcomes of transactions over slots.
    pub(crate) fn waits(&self) -> WaitFigures {
        self.apart.waits
    }

    /// Takes the reply to a command that a transaction waits for.
    pub(super) fn answer(&mut self, exec: u64, reply: Output) {
        self.answers.push((exec, reply));
    }
}

impl Front {
    /// Queues a command for `EXEC`.
    pub(super) fn queue(
        &mut self,
        now: Now,
        mut header: Header,
        spec: &Spec,
        args: Args<'_>,
        reply: &mut Reply<'_>,
    ) {
        let grows = spec.flags.has(Flags::DENYOOM).then_some(header.command);
        let refused = refusal_of_changes(&mut self.kernel, now, spec.flags, grows);
        let limit = self.config.client_query_buffer_limit.min(LARGEST_QUEUE);
        let spare = &mut self.transactions.spare;
        let Some(connection) = self.connections.get(header.conn) else {
            return;
        };
        let transaction = &mut connection.transaction;
        if spec.flags.has(Flags::NO_MULTI) {
            transaction.abort();
            return reply.error(&"ERR Command not allowed inside a transaction".into());
        }
        if let Some(failure) = refused {
            transaction.abort();
            self.kernel.stats_mut()[usize::from(header.command)].rejected += 1;
            return reply.error(&failure);
        }
        if !transaction.aborted {
            if transaction.bytes + size_of_request(&args) > limit {
                transaction.abort();
                return reply.error(&TOO_LARGE);
            }
            header.db = transaction.db.unwrap_or(header.db);
            if spec.flags.has(Flags::SELECT) {
                transaction.db = options::database(args.get(1)).ok().or(transaction.db);
            }
            transaction.keep(header, spec, args, spare);
        }
        reply.simple("QUEUED");
    }

    /// An error reply to a request that is not run. It aborts the transaction that the request was
    /// part of, or was to end.
    pub(super) fn refused_in_transaction(
        &mut self,
        conn: ConnId,
        spec: Option<&Spec>,
        failure: &Failure,
    ) -> Option<Failure> {
        let has_begun = self
            .connection(conn)
            .is_some_and(|c| c.transaction.is_begun());
        if spec.is_some_and(|spec| spec.flags.has(Flags::EXEC)) && !has_begun {
            self.end_transaction(conn);
            return Some(discarded(failure));
        }
        if let Some(connection) = self.connection(conn) {
            connection.transaction.abort();
        }
        None
    }

    /// Drops a connection's queue and watches.
    pub(crate) fn end_transaction(&mut self, conn: ConnId) {
        let Some(connection) = self.connection(conn) else {
            return;
        };
        let watcher = connection.watcher();
        let ended = std::mem::take(&mut connection.transaction);
        self.end_parts(watcher, ended);
    }

    fn end_parts(&mut self, watcher: WatchId, ended: Transaction) {
        if let Some(batch) = ended.queued {
            self.transactions.keep(batch);
        }
        if let Some(begun) = ended.begun {
            self.counters.on_transaction_ended(false);
            self.end_begun(*begun);
        }
        self.end_watches(watcher, ended.watched.iter());
        self.end_far(ended.far);
    }

    /// A connection is closed.
    pub(super) fn end_transaction_of(&mut self, connection: &mut Connection) {
        let ended = std::mem::take(&mut connection.transaction);
        self.end_parts(connection.watcher(), ended);
    }

    /// Removes watches at the owners of keys.
    pub(super) fn end_watches<'k>(
        &mut self,
        watcher: WatchId,
        keys: impl Iterator<Item = &'k KeyName>,
    ) {
        let placement = self.kernel.placement();
        let owners: BTreeSet<_> = keys.map(|(_, key)| placement.owner(key)).collect();
        for owner in owners {
            if owner == self.id() {
                self.kernel.shard.observers_mut().unwatch(watcher);
            } else {
                self.out.tell(owner, move |front, _| {
                    front.kernel.shard.observers_mut().unwatch(watcher)
                });
            }
        }
    }

    /// A command that had only been queued is run.
    fn show_queued(&mut self, now: Now, header: &Header, args: &Args<'_>) {
        let spec = self.table.spec(header.command);
        if self.shared.has_monitors() && monitor::shows(spec) {
            self.feed_monitors(now, header.conn, spec, args);
        }
        if let Some(connection) = self.connection(header.conn) {
            connection.commands += 1;
            connection.last_command = Some(header.command);
        }
    }

    /// Shows monitors that a transaction ended.
    pub(super) fn show_exec(&mut self, now: Now, conn: ConnId) {
        if self.shared.has_monitors()
            && let Some(exec) = self.table.find(b"exec")
        {
            let args = Args::new(b"exec", &[(0, 4)], &mut []);
            self.feed_monitors(now, conn, self.table.spec(exec), &args);
        }
    }

    /// For an event of a transaction over slots.
    pub(crate) fn apart(&mut self, now: Now) -> Apart<'_> {
        let since_us = now.mono_us;
        Apart {
            front: self,
            now,
            since_us,
        }
    }

    /// Ends watches that slots have recorded.
    fn end_far(&mut self, far: Far) {
        self.apart(Now::default()).end_watches(far);
    }

    fn watch_here<'k>(
        &mut self,
        watcher: WatchId,
        keys: impl Iterator<Item = &'k KeyName>,
        now: Now,
    ) {
        for (db, bytes) in keys {
            let key = self.kernel.shard.key(bytes);
            self.kernel.shard.watch(usize::from(*db), key, watcher, now);
        }
    }
}

/// Why changes are refused at present, if commands with these flags make any.
fn refusal_of_changes(
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

impl Transactions {
    /// A name for promises of all workers to a transaction of worker `own`. Names of holds are
    /// small numbers.
    fn name(&mut self, own: WorkerId) -> u64 {
        self.names += 1;
        1 << 63 | u64::from(own.0) << 47 | self.names
    }

    fn keep(&mut self, mut batch: Box<Batch>) {
        batch.reset();
        self.spare = Some(batch);
    }
}

impl Session<'_> {
    /// `MULTI`.
    pub(crate) fn begin_transaction(&mut self) -> Result<(), Failure> {
        let transaction = &mut self.connection()?.transaction;
        if transaction.open {
            return Err("ERR MULTI calls can not be nested".into());
        }
        if transaction.is_begun() {
            return Err("ERR MULTI inside a transaction started by BEGIN".into());
        }
        transaction.open = true;
        Ok(())
    }

    /// `DISCARD`.
    pub(crate) fn discard_transaction(&mut self) -> Result<(), Failure> {
        if !self.connection()?.transaction.open {
            return Err("ERR DISCARD without MULTI".into());
        }
        self.local.front.end_transaction(self.conn);
        Ok(())
    }

    /// `WATCH` keys, which begin at argument `from`. The reply comes when all their owners have
    /// recorded the watch.
    pub(crate) fn watch(
        &mut self,
        args: &Args<'_>,
        from: usize,
        reply: &mut Reply<'_>,
    ) -> Result<(), Failure> {
        let limit = self.local.front.config.client_query_buffer_limit;
        let (here, now) = (self.local.front.id(), self.now);
        let placement = self.local.front.kernel.placement().clone();
        let refused = args
            .iter_from(from)
            .find_map(|key| self.local.front.locator().refused_watch(key));
        if let Some(failure) = refused {
            return Err(failure);
        }
        let connection = self.connection()?;
        if connection.transaction.open {
            return Err("ERR WATCH inside MULTI is not allowed".into());
        }
        if connection.transaction.is_begun() {
            return Err("ERR WATCH inside BEGIN is not allowed".into());
        }
        let (watcher, db) = (connection.watcher(), connection.db);
        let transaction = &mut connection.transaction;
        let (mut own, mut others) = (Vec::new(), Vec::new());
        let mut all = Vec::new();
        for key in args.iter_from(from) {
            let key: KeyName = (db, key.into());
            if transaction.watched.contains(&key) {
                continue;
            }
            transaction.watched_bytes += key.1.len() + 2 * size_of::<KeyName>();
            if transaction.watched_bytes > limit {
                return Err(WATCHES_TOO_MUCH);
            }
            transaction.watched.insert(key.clone());
            all.push(key.clone());
            match placement.owner(&key.1) {
                owner if owner == here => own.push(key),
                owner => others.push((owner, key)),
            }
        }
        let (conn, front) = (self.conn, &mut self.local.front);
        if front.apart(now).records(conn, &all) {
            front.apart(now).watch(conn, all)?;
            self.pending = true;
            return Ok(());
        }
        self.local.front.watch_here(watcher, own.iter(), now);
        if others.is_empty() {
            reply.ok();
            return Ok(());
        }
        let owners: BTreeSet<_> = others.iter().map(|(owner, _)| *owner).collect();
        let owners: Vec<_> = owners.into_iter().collect();
        self.ask(
            &owners,
            None,
            move |local, now| {
                let here = local.id();
                let own = others.iter().filter(|(owner, _)| *owner == here);
                local
                    .front
                    .watch_here(watcher, own.map(|(_, key)| key), now);
            },
            |_, _: Vec<()>, reply| reply.ok(),
        );
        Ok(())
    }

    /// `UNWATCH`.
    pub(crate) fn unwatch(&mut self) -> Result<(), Failure> {
        let connection = self.connection()?;
        if connection.transaction.is_begun() {
            return Err("ERR UNWATCH inside BEGIN is not allowed".into());
        }
        let watcher = connection.watcher();
        connection.transaction.watched_bytes = 0;
        let watched = std::mem::take(&mut connection.transaction.watched);
        let far = std::mem::take(&mut connection.transaction.far);
        self.local.front.end_watches(watcher, watched.iter());
        self.local.front.end_far(far);
        Ok(())
    }
}
