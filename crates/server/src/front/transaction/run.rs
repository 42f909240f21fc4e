//! Running a transaction's commands, in one step or in several.

use super::super::listing::{self, Scope};
use super::super::local::Local;
use super::super::session::Session;
use super::super::{Front, Message};
use super::plan::{Needs, looks_at_all_keys};
use super::undoing::Errors;
use super::watching::end_watches;
use super::{Transaction, discarded};
use crate::cluster::door::Door;
use crate::command::{Dispatch, SessionRun};
use crate::front::connection::Connection;
use crate::front::replies::Written;
use rufous_base::limits::OUTPUT_HARD_LIMIT;
use rufous_base::{Args, Effects, Now, Output};
use rufous_command::{DataCommands, Failure, Queued, Reply};
use rufous_kernel::batch::Header;
use rufous_kernel::lock::KeyName;
use rufous_kernel::shard::WatchId;
use rufous_kernel::worker::HeldExec;
use rufous_kernel::{Batch, Program, Worker};

const CHANGED_BEFORE: &str = "ERR a question about all keys can't follow a change in the same transaction on a node with several workers, or with CLIENT ROLLBACK-ON-ERROR ON";

/// A running transaction.
#[derive(Debug)]
pub(crate) struct Running {
    pub(super) header: Header,
    pub(super) batch: Box<Batch>,
    /// The first command that has not run.
    next: usize,
    /// The reply so far, if it is not made in one step.
    out: Output,
    /// The reply exceeded the limit and was dropped.
    too_much: bool,
    pub(super) held: Option<HeldExec>,
    /// `COMMIT` runs it: its commands carry their databases, and monitors have seen them.
    pub(super) begun: bool,
    /// A watched key was touched, or an error has undone it.
    pub(super) dirty: bool,
    pub(super) watcher: WatchId,
    pub(super) watched: Vec<KeyName>,
    /// The database that its commands select.
    pub(super) db: Option<u8>,
    /// When it was asked for.
    pub(super) since_us: u64,
    /// What an error within it does.
    pub(super) errors: Errors,
}

impl Running {
    /// `EXEC` or `COMMIT` runs what a connection has queued.
    pub(super) fn new(
        now: Now,
        header: Header,
        queued: &mut Transaction,
        connection: &Connection,
    ) -> Self {
        Self {
            header,
            batch: queued.queued.take().unwrap_or_default(),
            next: 0,
            out: Output::default(),
            too_much: false,
            held: None,
            begun: queued.is_begun(),
            dirty: false,
            watcher: connection.watcher(),
            watched: std::mem::take(&mut queued.watched).into_iter().collect(),
            db: queued.db,
            since_us: now.mono_us,
            errors: Errors::of(connection, queued.has_token),
        }
    }
}

/// Why a transaction is not executed, if it writes lattice keys while clocks lead too far: later, no part is refused.
pub(super) fn refused_by_clocks(
    kernel: &mut Worker<DataCommands>,
    now: Now,
    queued: &mut Batch,
) -> Option<Failure> {
    let why = kernel.clocks_lead(now)?;
    let writes = (0..queued.requests.len()).any(|at| {
        let (header, args, _) = queued.parts(at);
        DataCommands::writes_lattice(header.command, &args, kernel.placement())
    });
    writes.then(|| kernel.on_refused_by_clocks())?;
    Some(discarded(&why.to_string().into()))
}

/// The reply to a transaction that has waited until this node serves its keys.
pub(super) const UNSERVED: &str = "TRYAGAIN The transaction's keys have moved to another node, or wait for it \
                                   to answer for them; nothing was done: send it again";

impl Front {
    /// Runs a transaction, or starts it. True if the reply comes later.
    pub(super) fn run_transaction(
        &mut self,
        now: Now,
        mut running: Running,
        reply: &mut Reply<'_>,
    ) -> bool {
        let exec = self.transactions.number();
        if let Some(plan) = running.plan(now, exec, &self.kernel, self.table) {
            self.transactions.on_waits(exec, running);
            self.kernel.hold_all(plan);
            return true;
        }
        let watched = &running.watched;
        if !watched.is_empty() && self.kernel.is_dirty_here(running.watcher, watched, now) {
            reply.null_array();
            running.dirty = true;
            self.finish_running(now, running);
            return false;
        }
        let keys = if self.kernel.splits() {
            Needs::of(&mut running.batch, self.table).keys
        } else {
            Vec::new()
        };
        let start = reply.out.mark();
        reply.array(running.batch.requests.len());
        if self.run_list(now, exec, &mut running, start, reply.out) {
            if let Some(why) = self.undo(&mut running) {
                reply.out.truncate(start);
                reply.error(&why);
            }
            self.kernel.serve_waiters(now);
            let header = running.header;
            self.finish_running(now, running);
            let keys = keys.iter().map(|(_, key)| &**key);
            return self.kernel.keeps_reply(&header, keys, start, reply.out);
        }
        running.out.append_range(reply.out, start, reply.out.mark());
        reply.out.truncate(start);
        self.transactions.on_waits(exec, running);
        true
    }

    /// Continues transactions whose keys are held by now, or whose questions are answered.
    pub(in crate::front) fn run_transactions(&mut self, now: Now, fx: &mut Effects<Message>) {
        loop {
            if let Some(held) = self.kernel.next_held() {
                self.start_held(now, held, fx);
            } else {
                let answers = self.transactions.take_answers();
                if answers.is_empty() {
                    return;
                }
                for (exec, reply) in answers {
                    self.go_on(now, exec, &reply, fx);
                }
            }
            self.settle_kernel(now, fx);
        }
    }

    fn start_held(&mut self, now: Now, held: HeldExec, fx: &mut Effects<Message>) {
        let exec = held.exec;
        if let Some(step) = self.transactions.take_step(exec) {
            return self.step_held(now, step, held, fx);
        }
        let Some(mut running) = self.transactions.take_running(exec) else {
            debug_assert!(false, "keys held for a transaction that is not under way");
            return;
        };
        let (conn, mut out) = (running.header.conn, std::mem::take(&mut running.out));
        let (dirty, resumed, unserved) = (held.dirty, held.resumed, held.unserved);
        if !dirty && !resumed && self.apart(now).takes_by_now(&mut running) {
            self.kernel.drop_held(held, now);
            return self.apart(now).exec_late(running, fx);
        }
        let held = running.held.insert(held);
        held.admit();
        if resumed {
            return self.run_on(now, exec, running, out, fx);
        }
        // A slot may have moved or got its first copy since, and a clock may have jumped. A touched watch is enough.
        let refused = if dirty {
            None
        } else if unserved {
            let door = self.connection(conn).map_or(Door::Plain, |c| c.door());
            let moved = self.locator().refused_queue(door, &mut running.batch);
            Some(moved.unwrap_or(UNSERVED.into()))
        } else {
            let spread = self.locator().refused_spread(&mut running.batch);
            spread.or_else(|| refused_by_clocks(&mut self.kernel, now, &mut running.batch))
        };
        if let Some(why) = refused {
            Reply::new(&mut out, false).error(&why);
            running.batch.requests.clear();
        } else if dirty {
            let resp3 = self.connection(conn).is_some_and(|c| c.resp3);
            Reply::new(&mut out, resp3).null_array();
            running.dirty = true;
            running.batch.requests.clear();
        } else {
            Reply::new(&mut out, false).array(running.batch.requests.len());
        }
        self.run_on(now, exec, running, out, fx);
    }

    fn go_on(&mut self, now: Now, exec: u64, reply: &Output, fx: &mut Effects<Message>) {
        let Some(mut running) = self.transactions.take_running(exec) else {
            // It did not wait for this answer.
            return;
        };
        let mut out = std::mem::take(&mut running.out);
        self.counters.note_reply(reply, (0, 0), reply.mark());
        running.errors.note(&reply.bytes);
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
        if self.run_list(now, exec, &mut running, (0, 0), &mut out) {
            self.finish_late(now, running, out, fx);
        } else {
            running.out = out;
            self.transactions.on_waits(exec, running);
        }
    }

    /// Why nothing of a transaction stays, if a command has failed whose error undoes all.
    fn undo(&mut self, running: &mut Running) -> Option<Failure> {
        let (why, db) = running.undo()?;
        if let Some(connection) = self.connections.get(running.header.conn) {
            connection.db = db;
        }
        Some(why)
    }

    /// Ends a transaction whose reply is pending.
    fn finish_late(
        &mut self,
        now: Now,
        mut running: Running,
        mut out: Output,
        fx: &mut Effects<Message>,
    ) {
        if let Some(why) = self.undo(&mut running) {
            out = Output::default();
            Reply::new(&mut out, false).error(&why);
        }
        let held = running.held.take();
        let header = running.header;
        self.finish_running(now, running);
        if let Some(held) = held {
            self.kernel.release_held(held, now, &header, out);
            self.deliver_outcomes(fx);
            return;
        }
        let reply = Written::all(&out);
        self.connections
            .on_reply(header.conn, header.seq, reply, fx);
    }

    /// Ends a transaction after its last command.
    fn finish_running(&mut self, now: Now, running: Running) {
        let conn = running.header.conn;
        let (kernel, out) = (&mut self.kernel, &mut self.out);
        end_watches(running.watcher, running.watched.iter(), kernel, out);
        self.transactions.keep(running.batch);
        if running.too_much {
            self.connections.close_now(conn);
        }
        if running.begun {
            self.counters.on_transaction_ended(!running.dirty);
        } else {
            self.show_exec(now, conn);
        }
    }

    /// Runs commands until the last, or until one has to wait for other workers: then false. The
    /// reply begins at `from`.
    fn run_list(
        &mut self,
        now: Now,
        exec: u64,
        running: &mut Running,
        from: (usize, usize),
        out: &mut Output,
    ) -> bool {
        // Held keys are written with a time that the hold carries.
        let here = running.held.is_none();
        if here {
            self.kernel.begin_transaction(now);
        }
        let done = self.run_each(now, exec, running, from, out);
        if here {
            self.kernel.end_transaction();
        }
        done
    }

    fn run_each(
        &mut self,
        now: Now,
        exec: u64,
        running: &mut Running,
        from: (usize, usize),
        out: &mut Output,
    ) -> bool {
        while running.next < running.batch.requests.len() {
            let (mut header, args, _) = running.batch.parts(running.next);
            running.next += 1;
            header.seq = running.header.seq;
            if let Some(connection) = self.connection(header.conn) {
                if !running.begun {
                    header.db = connection.db;
                }
                header.resp3 = connection.resp3;
                header.no_touch = connection.no_touch;
            }
            if let Some(held) = running.held.take() {
                running.held = self.kernel.with_others_held(now, held, &header, &args);
                if running.held.is_none() {
                    running.next -= 1;
                    return false;
                }
            }
            if !running.begun {
                self.show_queued(now, &header, &args);
            }
            let start = out.mark();
            if !self.run_queued(now, exec, &header, running.held.as_mut(), args, out) {
                return false;
            }
            self.counters.note_reply(out, start, out.mark());
            running
                .errors
                .note(out.bytes.get(start.0..).unwrap_or_default());
            if out.bytes.len() - from.0 > OUTPUT_HARD_LIMIT {
                // A started transaction runs to its end, but no client could take this reply.
                running.too_much = true;
            }
            if running.too_much {
                out.truncate(from);
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
        if let Some(failure) = self.locator().refused_on_lattice(header.command, &args) {
            Reply::new(out, header.resp3).error(&failure);
            self.kernel.note(header.command, false);
            return true;
        }
        let action = match self.table.dispatch(header.command) {
            Dispatch::Key | Dispatch::Keys => None,
            Dispatch::Node(action) => match action(&args, header.db) {
                Ok(action) => {
                    if let Some(why) = self.kernel.refuses_action(action) {
                        DataCommands::refuse(header.command, &why, header.resp3, out);
                        self.kernel.note(header.command, false);
                        return true;
                    }
                    Some(action)
                }
                Err(failure) => {
                    Reply::new(out, header.resp3).error(&failure);
                    self.kernel.note(header.command, false);
                    return true;
                }
            },
            Dispatch::Session(run) => {
                return self.run_queued_session(now, exec, header, held, run, args, out);
            }
        };
        match held {
            Some(held) => self.kernel.run_held(held, now, header, action, args, out),
            None => self.kernel.run_now(now, header, args, out),
        }
        true
    }

    /// Runs a command that is not on data. False if its reply comes later.
    #[expect(clippy::too_many_arguments, reason = "what one command of a list is")]
    fn run_queued_session(
        &mut self,
        now: Now,
        exec: u64,
        header: &Header,
        held: Option<&mut HeldExec>,
        run: SessionRun,
        args: Args<'_>,
        out: &mut Output,
    ) -> bool {
        let spec = self.table.spec(header.command);
        let queued = spec.flags.queued();
        let refused = match (queued, held) {
            (Queued::Refused, _) => {
                Some("ERR MONITOR isn't allowed for DENY BLOCKING client".into())
            }
            (Queued::Counts, Some(held)) => return self.count_held(now, exec, header, held, out),
            (_, Some(held)) if held.has_changes() && looks_at_all_keys(spec) => {
                Some(CHANGED_BEFORE.into())
            }
            _ => None,
        };
        if let Some(failure) = refused {
            Reply::new(out, header.resp3).error(&failure);
            self.kernel.note(header.command, false);
            return true;
        }
        let start = out.mark();
        let pending = self.run_session(now, header, Some(exec), run, args, out);
        if !pending {
            if out.mark() == start {
                // `CLIENT REPLY` has no reply; the list needs an element.
                Reply::new(out, header.resp3).ok();
            }
            return true;
        }
        if queued == Queued::Schedules {
            // A save begins by holding everything: waiting for it would be waiting for this
            // transaction itself.
            Reply::new(out, header.resp3).simple("Background saving scheduled");
            return true;
        }
        false
    }

    /// DBSIZE: the owners' counts, adjusted by the transaction's changes.
    fn count_held(
        &mut self,
        now: Now,
        exec: u64,
        header: &Header,
        held: &HeldExec,
        out: &mut Output,
    ) -> bool {
        let (from, more) = held.count(header.db);
        self.kernel.note(header.command, true);
        let mut session = Session {
            local: Local { front: self },
            conn: header.conn,
            now,
            pending: false,
            exec: Some(exec),
        };
        let of = Scope::of(&mut session).listing();
        listing::ask_all(
            &mut session,
            &mut Reply::new(out, header.resp3),
            move |local, _| from.map_or(0, |db| local.len(usize::from(db), of)),
            move |_, counts, reply| reply.integer(counts.iter().sum::<usize>() as i64 + more),
        );
        !session.pending
    }
}
