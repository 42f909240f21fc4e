//! Transactions: `MULTI`, `EXEC` and what lies between them; `WATCH`.
//!
//! Commands are kept at the connection as they come. `EXEC` runs them in one
//! step where all their keys are this worker's and free; otherwise the kernel
//! holds the keys at their owners first (`rufous_kernel::worker::exec`), and
//! the commands run once it has them all. Either way this module runs the
//! list: commands on data through the kernel, others as they always run. One
//! that asks other workers interrupts the list until they have answered; the
//! keys stay held meanwhile.
//!
//! Where a watched key lives, its owner keeps who watches it, and is asked
//! while it holds the key. Every end of a transaction ends the watches.

use super::connection::Connection;
use super::session::Session;
use super::{Front, Message, Replies, closing, find, monitor};
use crate::command::{Dispatch, SessionRun};
use rufous_base::limits::OUTPUT_HARD_LIMIT;
use rufous_base::{Args, ConnId, Effects, Now, Output};
use rufous_command::{Failure, Flags, Reply, Spec, options};
use rufous_kernel::batch::{Header, Request};
use rufous_kernel::lock::KeyName;
use rufous_kernel::multi::NodeAction;
use rufous_kernel::shard::WatchId;
use rufous_kernel::worker::{ExecPlan, HeldExec};
use rufous_kernel::Batch;
use std::collections::BTreeSet;

const TOO_LARGE: Failure = Failure(std::borrow::Cow::Borrowed(
    "ERR the transaction is larger than client-query-buffer-limit allows",
));
const WATCHES_TOO_MUCH: Failure = Failure(std::borrow::Cow::Borrowed(
    "ERR the watched keys are larger than client-query-buffer-limit allows",
));
const CHANGED_BEFORE: Failure = Failure(std::borrow::Cow::Borrowed(
    "ERR a question about all keys can't follow a change in the same transaction on a node with several workers",
));

/// Offsets in a batch count in 32 bits.
const LARGEST_QUEUE: usize = 1 << 31;

/// What a connection has queued and watches.
#[derive(Debug, Default)]
pub struct Transaction {
    /// `MULTI` was given.
    pub open: bool,
    /// A command could not be queued: `EXEC` will be refused.
    pub aborted: bool,
    queued: Option<Box<Batch>>,
    /// What the queue takes.
    bytes: usize,
    /// The flags of all queued commands together.
    flags: u32,
    pub watched: BTreeSet<KeyName>,
    watched_bytes: usize,
}

impl Transaction {
    /// How many commands are queued.
    pub fn len(&self) -> usize {
        self.queued.as_ref().map_or(0, |batch| batch.requests.len())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the queue takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Has `EXEC` refused. The queue is of no use any more.
    pub(super) fn abort(&mut self) {
        if self.open {
            self.aborted = true;
            self.queued = None;
            self.bytes = 0;
        }
    }
}

impl Connection {
    /// The flags of a command, and for `EXEC` those of all that it will run.
    pub fn flags_with_queued(&self, spec: &Spec) -> Flags {
        match spec.name {
            "exec" => spec.flags.or(Flags(self.transaction.flags)),
            _ => spec.flags,
        }
    }

    /// Whether a command is kept for `EXEC`.
    pub(super) fn queues(&self, spec: &Spec) -> bool {
        self.transaction.open
            && !matches!(
                spec.name,
                "exec" | "discard" | "multi" | "watch" | "quit" | "reset"
            )
    }

    /// By which the owners of keys know who watches them.
    fn watcher(&self) -> WatchId {
        WatchId(self.client_id)
    }
}

/// A transaction that is being run.
#[derive(Debug)]
pub(crate) struct Running {
    header: Header,
    batch: Box<Batch>,
    /// The first command that has not run.
    next: usize,
    /// The reply so far, where it was not made in one step.
    out: Output,
    /// The reply grew beyond all bounds and was thrown away.
    too_much: bool,
    held: Option<HeldExec>,
    watcher: WatchId,
    watched: Vec<KeyName>,
}

/// What `EXEC` and others need of the transactions under way.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    running: std::collections::BTreeMap<u64, Running>,
    next: u64,
    /// Answers to commands within them that had to ask other workers.
    answers: Vec<(u64, Output)>,
    /// For the next one.
    spare: Option<Box<Batch>>,
}

impl Transactions {
    /// Takes the reply to a command that a transaction waits for.
    pub(super) fn answer(&mut self, exec: u64, reply: Output) {
        self.answers.push((exec, reply));
    }
}

impl Front {
    /// Keeps a command for `EXEC`.
    pub(super) fn queue(
        &mut self,
        header: Header,
        spec: &Spec,
        args: Args<'_>,
        reply: &mut Reply<'_>,
    ) {
        let limit = self.config.client_query_buffer_limit.min(LARGEST_QUEUE);
        let spare = &mut self.transactions.spare;
        let Some(connection) = find(&mut self.connections, header.conn) else {
            return;
        };
        let transaction = &mut connection.transaction;
        if spec.flags.has(Flags::NO_MULTI) {
            transaction.abort();
            return reply.error(&"ERR Command not allowed inside a transaction".into());
        }
        if !transaction.aborted {
            let bytes: usize = args.iter_from(0).map(|arg| arg.len() + 8).sum();
            transaction.bytes += bytes + size_of::<Request>();
            if transaction.bytes > limit {
                transaction.abort();
                return reply.error(&TOO_LARGE);
            }
            transaction.flags |= spec.flags.0;
            let queued = transaction
                .queued
                .get_or_insert_with(|| spare.take().unwrap_or_default());
            queued.push(header, args);
        }
        reply.simple("QUEUED");
    }

    /// An error reply to a request that is not run. It aborts the transaction
    /// that the request was to be part of, or to end.
    pub(super) fn refused_in_transaction(
        &mut self,
        conn: ConnId,
        spec: Option<&Spec>,
        failure: &Failure,
    ) -> Option<Failure> {
        if spec.is_some_and(|spec| spec.name == "exec") {
            self.end_transaction(conn);
            let text = failure.text();
            let why = text.strip_prefix("ERR ").unwrap_or(text);
            return Some(format!("EXECABORT Transaction discarded because of: {why}").into());
        }
        if let Some(connection) = self.connection(conn) {
            connection.transaction.abort();
        }
        None
    }

    /// Forgets what a connection has queued and watches.
    pub(crate) fn end_transaction(&mut self, conn: ConnId) {
        let Some(connection) = self.connection(conn) else {
            return;
        };
        let watcher = connection.watcher();
        let ended = std::mem::take(&mut connection.transaction);
        if let Some(batch) = ended.queued {
            self.transactions.keep(batch);
        }
        self.end_watches(watcher, ended.watched.iter());
    }

    /// Tells the owners of keys that they are not watched any more.
    pub(super) fn end_watches<'k>(
        &mut self,
        watcher: WatchId,
        keys: impl Iterator<Item = &'k KeyName>,
    ) {
        let placement = self.kernel.placement();
        let owners: BTreeSet<_> = keys.map(|(_, key)| placement.owner(key)).collect();
        for owner in owners {
            if owner == self.id() {
                self.kernel.shard.unwatch(watcher);
            } else {
                self.tell(owner, move |front, _| front.kernel.shard.unwatch(watcher));
            }
        }
    }

    /// Goes on with transactions whose keys are held by now, or whose
    /// questions are answered.
    pub(super) fn run_transactions(&mut self, now: Now, fx: &mut Effects<Message>) {
        loop {
            if let Some(held) = self.kernel.next_held() {
                self.start_held(now, held, fx);
            } else if !self.transactions.answers.is_empty() {
                for (exec, reply) in std::mem::take(&mut self.transactions.answers) {
                    self.go_on(now, exec, &reply, fx);
                }
            } else {
                return;
            }
            self.settle_kernel(now, fx);
        }
    }

    fn start_held(&mut self, now: Now, held: HeldExec, fx: &mut Effects<Message>) {
        let exec = held.exec;
        let Some(mut running) = self.transactions.running.remove(&exec) else {
            debug_assert!(false, "keys held for a transaction that is not under way");
            return;
        };
        let mut out = Output::default();
        let dirty = held.dirty;
        running.held = Some(held);
        if dirty {
            let resp3 = self.connection(running.header.conn).is_some_and(|c| c.resp3);
            Reply::new(&mut out, resp3).null_array();
            running.batch.requests.clear();
        } else {
            Reply::new(&mut out, false).array(running.batch.requests.len());
        }
        self.run_on(now, exec, running, out, fx);
    }

    fn go_on(&mut self, now: Now, exec: u64, reply: &Output, fx: &mut Effects<Message>) {
        let Some(mut running) = self.transactions.running.remove(&exec) else {
            // It did not wait for this answer.
            return;
        };
        let mut out = std::mem::take(&mut running.out);
        self.counters.note_reply(&reply.bytes);
        out.append_range(reply, (0, 0), reply.mark());
        self.run_on(now, exec, running, out, fx);
    }

    fn run_on(
        &mut self,
        now: Now,
        exec: u64,
        mut running: Running,
        mut out: Output,
        fx: &mut Effects<Message>,
    ) {
        if self.run_list(now, exec, &mut running, &mut out) {
            self.finish_late(now, running, out, fx);
        } else {
            running.out = out;
            self.transactions.running.insert(exec, running);
        }
    }

    /// Ends a transaction whose reply was promised.
    fn finish_late(
        &mut self,
        now: Now,
        mut running: Running,
        out: Output,
        fx: &mut Effects<Message>,
    ) {
        let held = running.held.take();
        let header = running.header;
        self.finish_running(now, running);
        if let Some(held) = held {
            let mut replies = Replies {
                connections: &mut self.connections,
                counters: &mut self.counters,
                fx,
            };
            self.kernel
                .release_held(held, now, &header, out, &mut replies);
            return;
        }
        let Some(connection) = find(&mut self.connections, header.conn) else {
            return;
        };
        let start = fx.output.mark();
        connection.complete(header.seq, &out, (0, 0), out.mark(), &mut fx.output);
        fx.write(header.conn, start);
        closing::close_if_last(connection, fx);
    }

    /// What follows the last command.
    fn finish_running(&mut self, now: Now, running: Running) {
        let conn = running.header.conn;
        self.end_watches(running.watcher, running.watched.iter());
        self.transactions.keep(running.batch);
        if running.too_much {
            self.close_now(conn);
        }
        let spec = self.table.spec(running.header.command);
        if self.shared.has_monitors() {
            let args = Args::new(b"exec", &[(0, 4)], &mut []);
            self.feed_monitors(now, conn, spec, &args);
        }
    }

    /// Runs commands until the last, or until one has to wait for other
    /// workers: then false.
    fn run_list(&mut self, now: Now, exec: u64, running: &mut Running, out: &mut Output) -> bool {
        while running.next < running.batch.requests.len() {
            let (mut header, args, _) = running.batch.parts(running.next);
            running.next += 1;
            header.seq = running.header.seq;
            if let Some(connection) = self.connection(header.conn) {
                header.db = connection.db;
                header.resp3 = connection.resp3;
                header.no_touch = connection.no_touch;
            }
            let start = out.mark();
            if !self.run_queued(now, exec, &header, running.held.as_mut(), args, out) {
                return false;
            }
            if out.bytes.get(start.0) == Some(&b'-') {
                self.counters.note_reply(&out.bytes[start.0..]);
            }
            if out.bytes.len() > OUTPUT_HARD_LIMIT {
                // What has begun runs to its end, but nobody could take this.
                running.too_much = true;
            }
            if running.too_much {
                *out = Output::default();
            }
        }
        true
    }

    fn run_queued(
        &mut self,
        now: Now,
        exec: u64,
        header: &Header,
        held: Option<&mut HeldExec>,
        args: Args<'_>,
        out: &mut Output,
    ) -> bool {
        let spec = self.table.spec(header.command);
        if self.shared.has_monitors() && monitor::shows(spec) {
            self.feed_monitors(now, header.conn, spec, &args);
        }
        if let Some(connection) = self.connection(header.conn) {
            connection.commands += 1;
            connection.last_command = Some(header.command);
        }
        let action = match self.table.dispatch(header.command) {
            Dispatch::Key | Dispatch::Keys => None,
            Dispatch::Node(action) => match action(&args, header.db) {
                Ok(action) => Some(action),
                Err(failure) => {
                    Reply::new(out, header.resp3).error(&failure);
                    self.kernel.note(header.command, false);
                    return true;
                }
            },
            Dispatch::Session(run) => {
                let changed = held.is_some_and(|held| held.has_changes());
                let several = self.kernel.placement().workers() > 1;
                let refused = match spec.name {
                    "monitor" => Some("ERR MONITOR isn't allowed for DENY BLOCKING client".into()),
                    _ if changed && several && looks_at_all_keys(spec) => Some(CHANGED_BEFORE),
                    _ => None,
                };
                return match refused {
                    Some(failure) => {
                        Reply::new(out, header.resp3).error(&failure);
                        self.kernel.note(header.command, false);
                        true
                    }
                    None => self.run_queued_session(now, exec, header, run, args, out),
                };
            }
        };
        match held {
            Some(held) => self
                .kernel
                .run_held(held, now, header, action, args, out),
            None => self.kernel.run_now(now, header, args, out),
        }
        true
    }

    /// Runs a command that is not on data. False where its reply comes later.
    fn run_queued_session(
        &mut self,
        now: Now,
        exec: u64,
        header: &Header,
        run: SessionRun,
        args: Args<'_>,
        out: &mut Output,
    ) -> bool {
        let start = out.mark();
        let pending = self.call_session(now, header, Some(exec), run, args, out);
        if !pending {
            if out.mark() == start {
                // `CLIENT REPLY` says nothing; the list needs an element.
                Reply::new(out, header.resp3).ok();
            }
            return true;
        }
        if matches!(
            self.table.spec(header.command).name,
            "bgsave" | "bgrewriteaof"
        ) {
            // It begins by holding everything: waiting for it would be waiting
            // for this transaction itself.
            Reply::new(out, header.resp3).simple("Background saving scheduled");
            return true;
        }
        false
    }
}

impl Transactions {
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
        transaction.open = true;
        Ok(())
    }

    /// `DISCARD`.
    pub(crate) fn discard_transaction(&mut self) -> Result<(), Failure> {
        if !self.connection()?.transaction.open {
            return Err("ERR DISCARD without MULTI".into());
        }
        self.front.end_transaction(self.conn);
        Ok(())
    }

    /// `WATCH` keys, which begin at argument `from`. The reply comes when all
    /// their owners know.
    pub(crate) fn watch(
        &mut self,
        args: &Args<'_>,
        from: usize,
        reply: &mut Reply<'_>,
    ) -> Result<(), Failure> {
        let limit = self.front.config.client_query_buffer_limit;
        let (here, now) = (self.front.id(), self.now);
        let placement = self.front.kernel.placement();
        let connection = self.connection()?;
        if connection.transaction.open {
            return Err("ERR WATCH inside MULTI is not allowed".into());
        }
        let (watcher, db) = (connection.watcher(), connection.db);
        let transaction = &mut connection.transaction;
        let (mut own, mut others) = (Vec::new(), Vec::new());
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
            match placement.owner(&key.1) {
                owner if owner == here => own.push(key),
                owner => others.push((owner, key)),
            }
        }
        self.front.watch_here(watcher, own.iter(), now);
        if others.is_empty() {
            reply.ok();
            return Ok(());
        }
        let owners: BTreeSet<_> = others.iter().map(|(owner, _)| *owner).collect();
        let owners: Vec<_> = owners.into_iter().collect();
        self.ask(
            &owners,
            None,
            move |front, now| {
                let here = front.id();
                let own = others.iter().filter(|(owner, _)| *owner == here);
                front.watch_here(watcher, own.map(|(_, key)| key), now);
            },
            |_, _: Vec<()>, reply| reply.ok(),
        );
        Ok(())
    }

    /// `UNWATCH`.
    pub(crate) fn unwatch(&mut self) -> Result<(), Failure> {
        let connection = self.connection()?;
        let watcher = connection.watcher();
        connection.transaction.watched_bytes = 0;
        let watched = std::mem::take(&mut connection.transaction.watched);
        self.front.end_watches(watcher, watched.iter());
        Ok(())
    }

    /// `EXEC`.
    pub(crate) fn exec(&mut self, command: u16, reply: &mut Reply<'_>) -> Result<(), Failure> {
        let now = self.now;
        let connection = self.connection()?;
        if !connection.transaction.open {
            return Err("ERR EXEC without MULTI".into());
        }
        if connection.transaction.aborted {
            self.front.end_transaction(self.conn);
            return Err("EXECABORT Transaction discarded because of previous errors.".into());
        }
        let taken = std::mem::take(&mut connection.transaction);
        let header = Header {
            conn: connection.id,
            seq: connection.next_seq(),
            command,
            db: connection.db,
            resp3: connection.resp3,
            no_touch: connection.no_touch,
            key: 0,
            hash: 0,
        };
        let running = Running {
            header,
            batch: taken.queued.unwrap_or_default(),
            next: 0,
            out: Output::default(),
            too_much: false,
            held: None,
            watcher: connection.watcher(),
            watched: taken.watched.into_iter().collect(),
        };
        self.pending = self.front.run_transaction(now, running, reply);
        Ok(())
    }
}

impl Front {
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

    /// Runs a transaction, or begins to. True where the reply comes later.
    fn run_transaction(
        &mut self,
        now: Now,
        mut running: Running,
        reply: &mut Reply<'_>,
    ) -> bool {
        let exec = self.transactions.next;
        self.transactions.next += 1;
        if let Some(plan) = self.plan(exec, &mut running) {
            self.transactions.running.insert(exec, running);
            self.kernel.hold_all(plan);
            return true;
        }
        let watched = &running.watched;
        if !watched.is_empty() && self.kernel.is_dirty_here(running.watcher, watched, now) {
            reply.null_array();
            self.finish_running(now, running);
            return false;
        }
        let start = reply.out.mark();
        reply.array(running.batch.requests.len());
        let before = match running.batch.requests.is_empty() {
            true => Output::default(),
            // So that a bound on this reply does not see those before it.
            false => std::mem::take(reply.out),
        };
        let mut out = Output::default();
        out.append_range(&before, start, before.mark());
        let done = self.run_list(now, exec, &mut running, &mut out);
        todo(done, before)
    }
}
