//! Transactions of a worker's clients: events are routed to the state of their connections, and to
//! [`Transactions`](super::Transactions).

use super::super::request::Request;
use super::super::{Front, Message};
use super::apart::Apart;
use super::apart::begun::fetch;
use super::begun::{TOO_LONG, given_up};
use super::run::UNSERVED;
use super::step::{Asked, NOT_INSIDE, NotPlaced, Step, TABLE_CHANGED};
use super::watching::end_watches;
use super::{TOO_LARGE, Transaction, Watched, discarded, limit_of, refusal_of_changes};
use crate::cluster::way::Way;
use crate::command::Dispatch;
use crate::front::connection::Connection;
use rufous_base::{Args, ConnId, Effects, Now, Output};
use rufous_command::{Failure, Flags, Reply, Spec};
use rufous_kernel::Submitted;
use rufous_kernel::batch::Header;
use rufous_kernel::lock::KeyName;
use rufous_kernel::replicate::transaction::Runs;
use rufous_kernel::shard::WatchId;
use rufous_kernel::worker::HeldExec;

/// `MULTI`.
impl Front {
    /// Queues a command for `EXEC`.
    pub(in crate::front) fn queue(
        &mut self,
        now: Now,
        header: Header,
        spec: &Spec,
        args: Args<'_>,
        reply: &mut Reply<'_>,
    ) {
        let grows = spec.flags.has(Flags::DENYOOM).then_some(header.command);
        let refused = refusal_of_changes(&mut self.kernel, now, spec.flags, grows);
        let limit = limit_of(&self.config);
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
        if let Err(failure) = transaction.queue(header, spec, args, limit, spare) {
            return reply.error(&failure);
        }
        reply.simple("QUEUED");
    }

    /// An error reply to a request that is not run. It aborts the transaction that the request was
    /// part of, or was to end.
    pub(in crate::front) fn refused_in_transaction(
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

    fn end_parts(&mut self, watcher: WatchId, mut ended: Transaction) {
        if let Some(batch) = ended.queued.take() {
            self.transactions.keep(batch);
        }
        if let Some(begun) = ended.begun.take() {
            self.counters.on_transaction_ended(false);
            let (kernel, out) = (&mut self.kernel, &mut self.out);
            self.transactions.end_begun(*begun, kernel, out);
        }
        self.end_watches(watcher, ended.take_watches());
    }

    /// A connection is closed.
    pub(in crate::front) fn end_transaction_of(&mut self, connection: &mut Connection) {
        let ended = std::mem::take(&mut connection.transaction);
        self.end_parts(connection.watcher(), ended);
    }

    /// Ends the watches of a connection.
    pub(super) fn end_watches(&mut self, watcher: WatchId, watched: Watched) {
        let (kernel, out) = (&mut self.kernel, &mut self.out);
        end_watches(watcher, watched.here.iter(), kernel, out);
        watched.far.end(self.peers.links(), kernel);
    }

    /// A command that had only been queued is run.
    pub(super) fn show_queued(&mut self, now: Now, header: &Header, args: &Args<'_>) {
        let spec = self.table.spec(header.command);
        self.show(now, header.conn, spec, args);
        if let Some(connection) = self.connection(header.conn) {
            connection.commands += 1;
            connection.last_command = Some(header.command);
        }
    }

    /// Shows monitors that a transaction ended.
    pub(super) fn show_exec(&mut self, now: Now, conn: ConnId) {
        if let Some(exec) = self.table.find(b"exec") {
            let args = Args::new(b"exec", &[(0, 4)], &mut []);
            self.show(now, conn, self.table.spec(exec), &args);
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
}

/// `BEGIN`.
impl Front {
    /// Routes a request of such a transaction.
    #[cold]
    pub(in crate::front) fn submit_begun(
        &mut self,
        now: Now,
        (request, way): (&Request<'_>, &Way),
        header: &Header,
        args: Args<'_>,
        fx: &mut Effects<Message>,
    ) -> Submitted {
        let spec = self.table.spec(header.command);
        match (self.run_begun(now, header, spec, args, &mut fx.output), way) {
            (Ok(submitted), _) => submitted,
            (Err(as_ever), Way::Here) => self.submit(now, request, header, as_ever, fx),
            (Err(as_ever), way) => self.submit_elsewhere(now, way, request, header, &as_ever, fx),
        }
    }

    /// Runs a command of a connection with an open transaction; returns it if it is to run outside
    /// of the transaction.
    fn run_begun<'a>(
        &mut self,
        now: Now,
        header: &Header,
        spec: &Spec,
        args: Args<'a>,
        out: &mut Output,
    ) -> Result<Submitted, Args<'a>> {
        let mut found = Vec::new();
        match self.table.dispatch(header.command) {
            Dispatch::Session(_) if !spec.flags.has(Flags::NO_MULTI) => return Err(args),
            Dispatch::Session(_) | Dispatch::Node(_) => {
                Reply::new(out, header.resp3).error(&NOT_INSIDE);
                return Ok(Submitted::Done);
            }
            Dispatch::Key | Dispatch::Keys => spec.keys.find(&args, header.db, &mut found),
        }
        let named = |&(db, arg): &(u8, u32)| (db, args.get(arg as usize).into());
        let keys: Vec<KeyName> = found.iter().map(named).collect();
        let asked = Asked {
            now,
            command: header.command,
            spec,
            keys: &keys,
            args: &args,
        };
        match self.place(&asked, header.conn) {
            Err(failure) => {
                self.kernel.stats_mut()[usize::from(header.command)].rejected += 1;
                Reply::new(out, header.resp3).error(&failure);
                Ok(Submitted::Done)
            }
            Ok(Runs::AsEver) => Err(args),
            Ok(runs) => Ok(self.take_step(now, header, (runs, keys), args, out)),
        }
    }

    /// Where a command of a transaction runs, if it is allowed.
    fn place(&mut self, asked: &Asked<'_, '_>, conn: ConnId) -> Result<Runs, Failure> {
        let (spec, now) = (asked.spec, asked.now);
        let grows = spec.flags.has(Flags::DENYOOM).then_some(asked.command);
        let kernel = &mut self.kernel;
        let refused = refusal_of_changes(kernel, now, spec.flags, grows);
        let Some(connection) = self.connections.get(conn) else {
            return Ok(Runs::AsEver);
        };
        let transaction = &mut connection.transaction;
        let room = limit_of(&self.config).saturating_sub(transaction.bytes());
        let Some(begun) = transaction.begun.as_deref_mut() else {
            return Ok(Runs::AsEver);
        };
        let placed = begun.place(asked, refused, room, kernel);
        let spare = begun.take_spare_promise();
        let all = &mut self.transactions;
        all.promises.redeem(spare, kernel, &mut self.out);
        match placed {
            Ok(runs) => Ok(runs),
            Err(NotPlaced::Refused(why)) => Err(why),
            Err(NotPlaced::GivenUp(why)) => {
                Err(all.give_up(now, why, transaction, kernel, &mut self.out))
            }
        }
    }

    /// Runs a command of a transaction, or starts to.
    fn take_step(
        &mut self,
        now: Now,
        header: &Header,
        placed: (Runs, Vec<KeyName>),
        args: Args<'_>,
        out: &mut Output,
    ) -> Submitted {
        let mut batch = self.transactions.spare.take().unwrap_or_default();
        batch.push(*header, args);
        let Some(connection) = self.connections.get(header.conn) else {
            return Submitted::Done;
        };
        let spec = self.table.spec(header.command);
        let step = Step::new(header, spec, batch, placed, connection);
        if step.runs == Runs::OnCopies && self.apart(now).records(header.conn, &step.taken) {
            return match fetch(&mut self.apart(now), Box::new(step)) {
                Ok(()) => Submitted::Barrier,
                Err(failure) => {
                    Reply::new(out, header.resp3).error(&failure);
                    Submitted::Done
                }
            };
        }
        let is_free = |(db, key): &KeyName| self.kernel.is_free_here(now, *db, key);
        if step.taken.iter().all(is_free) {
            self.run_step(now, step, None, out);
            self.kernel.serve_waiters(now);
            return Submitted::Done;
        }
        self.transactions.hold_for(step, &mut self.kernel)
    }

    /// The keys of a command are held.
    pub(super) fn step_held(
        &mut self,
        now: Now,
        step: Step,
        mut held: HeldExec,
        fx: &mut Effects<Message>,
    ) {
        let (header, mut out) = (step.header, Output::default());
        if held.unserved {
            Reply::new(&mut out, header.resp3).error(&UNSERVED.into());
            self.transactions.keep(step.batch);
        } else {
            self.run_step(now, step, Some(&mut held), &mut out);
        }
        self.kernel.release_held(held, now, &header, out);
        self.deliver_outcomes(fx);
    }

    /// Its keys are held, free or copied. Does nothing if the client has disconnected.
    pub(super) fn run_step(
        &mut self,
        now: Now,
        mut step: Step,
        held: Option<&mut HeldExec>,
        out: &mut Output,
    ) {
        let conn = step.header.conn;
        let kernel = &mut self.kernel;
        let connection = self.connections.get(conn);
        let transaction = connection.map(|connection| &mut connection.transaction);
        let Some(transaction) = transaction.filter(|transaction| transaction.is_begun()) else {
            // The watches began after the end of those of the transaction.
            if let (Some(watcher), false) = (step.watcher, step.is_copied) {
                end_watches(watcher, step.taken.iter(), kernel, &mut self.out);
            }
            return;
        };
        let Some(mut begun) = transaction.begun.take() else {
            return;
        };
        if let Some(why) = begun.given_up.as_ref().map(given_up) {
            Reply::new(out, step.header.resp3).error(&why);
            transaction.begun = Some(begun);
            step.watch_until_end(transaction);
            return self.transactions.keep(step.batch);
        }
        let start = out.mark();
        if step.has_watched(&begun, kernel) {
            step.watch_until_end(transaction);
        }
        let wrote = step.run(now, &mut begun, held, kernel, out);
        let is_old = begun.keyspaces != kernel.keyspaces().version();
        transaction.begun = Some(begun);
        if wrote {
            let (header, args, _) = step.batch.parts(0);
            let spec = self.table.spec(header.command);
            transaction.keep(header, spec, args, &mut self.transactions.spare);
        }
        let is_large = transaction.bytes() > limit_of(&self.config);
        if is_large || is_old {
            out.truncate(start);
            let why = if is_old { TABLE_CHANGED } else { TOO_LARGE };
            let all = &mut self.transactions;
            let failure = all.give_up(now, why, transaction, kernel, &mut self.out);
            Reply::new(out, step.header.resp3).error(&failure);
        }
        self.transactions.keep(step.batch);
    }

    /// Gives up the transaction of a connection.
    pub(in crate::front) fn give_up(&mut self, now: Now, conn: ConnId, why: Failure) {
        if let Some(connection) = self.connections.get(conn) {
            let transaction = &mut connection.transaction;
            let (kernel, out) = (&mut self.kernel, &mut self.out);
            self.transactions
                .give_up(now, why, transaction, kernel, out);
        }
    }

    /// All workers have promised.
    pub(super) fn begin_at_once(&mut self, now: Now, conn: ConnId, name: u64, times: &[u64]) {
        let time = times.iter().max().copied().unwrap_or_default();
        let stamp = self.kernel.stamp_above(now, time);
        let promises = &mut self.transactions.promises;
        let connection = self.connections.get(conn);
        let begun = connection.and_then(|c| c.transaction.begun.as_deref_mut());
        match begun.filter(|begun| begun.given_up.is_none()) {
            Some(begun) => {
                (begun.stamp, begun.promise) = (Some(stamp), Some(name));
                promises.on_given(now, name, conn);
            }
            None => promises.redeem(Some(name), &mut self.kernel, &mut self.out),
        }
    }

    /// Gives up transactions that write at once and have lasted too long. One of which that was not known yet will not.
    pub(in crate::front) fn end_long_transactions(&mut self, now: Now) {
        for conn in self.transactions.promises.due(now) {
            let connection = self.connections.get(conn);
            let begun = connection.and_then(|c| c.transaction.begun.as_deref_mut());
            let Some(begun) = begun.filter(|begun| !begun.open.writes_at_once()) else {
                self.give_up(now, conn, TOO_LONG);
                continue;
            };
            begun.open.settle();
            let (spare, promises) = (begun.take_spare_promise(), &mut self.transactions.promises);
            promises.redeem(spare, &mut self.kernel, &mut self.out);
        }
    }
}
