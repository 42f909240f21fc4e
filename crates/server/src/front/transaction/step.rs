//! Commands of a transaction begun with `BEGIN`: where each runs, and on which keys.

use super::super::turn::Request;
use super::super::{Front, Message};
use super::apart::begun::fetch;
use super::begun::{Begun, given_up};
use super::run::UNSERVED;
use super::{TOO_LARGE, refusal_of_changes, size_of_request};
use crate::cluster::way::Way;
use crate::command::Dispatch;
use rufous_base::{Args, Effects, Now, Output};
use rufous_command::{DataCommands, Failure, Flags, Reply, Spec};
use rufous_kernel::batch::Header;
use rufous_kernel::lock::KeyName;
use rufous_kernel::replicate::transaction::{Runs, Transaction as Open};
use rufous_kernel::shard::WatchId;
use rufous_kernel::worker::{ExecPlan, HeldExec};
use rufous_kernel::{Batch, Program, Submitted};
use std::borrow::Cow;

const NOT_INSIDE: Failure = Failure(Cow::Borrowed(
    "ERR Command not allowed inside a transaction started by BEGIN",
));
const OTHER_KEYS: Failure = Failure(Cow::Borrowed(
    "ERR BY and GET may tell of keys that the command does not name, of which the transaction has no copies: \
     use SORT_RO before the first write (not at levels item-cut and serializable), or do this outside",
));
const TABLE_CHANGED: Failure = Failure(Cow::Borrowed(
    "ERR the keyspaces were changed since the transaction began",
));
const TWO_ORDERS: Failure = Failure(Cow::Borrowed(
    "ERR keys of a causal keyspace and others can't be written by one command of a transaction of level read-uncommitted",
));

/// A command of such a transaction, while its keys are held.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) header: Header,
    batch: Box<Batch>,
    runs: Runs,
    /// Keys that are copied for it.
    pub(super) taken: Vec<KeyName>,
    /// They were copied.
    pub(super) is_copied: bool,
    /// It watches them from then on.
    pub(super) watcher: Option<WatchId>,
}

impl Step {
    /// The keys of the command.
    fn names(&mut self, spec: &Spec) -> Vec<KeyName> {
        let (header, args, _) = self.batch.parts(0);
        let mut found = Vec::new();
        spec.keys.find(&args, header.db, &mut found);
        let named = |&(db, arg): &(u8, u32)| (db, args.get(arg as usize).into());
        found.iter().map(named).collect()
    }
}

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
        match self.place(now, header, spec, &keys, &args) {
            Err(failure) => {
                self.kernel.stats_mut()[usize::from(header.command)].rejected += 1;
                Reply::new(out, header.resp3).error(&failure);
                Ok(Submitted::Done)
            }
            Ok(Runs::AsEver) => Err(args),
            Ok(runs) => Ok(self.take_step(now, header, runs, keys, args, out)),
        }
    }

    /// Where a command of a transaction runs, if it is allowed.
    fn place(
        &mut self,
        now: Now,
        header: &Header,
        spec: &Spec,
        keys: &[KeyName],
        args: &Args<'_>,
    ) -> Result<Runs, Failure> {
        let writes = spec.flags.has(Flags::WRITE);
        let grows = spec.flags.has(Flags::DENYOOM).then_some(header.command);
        let version = self.kernel.keyspaces().version();
        let refused = refusal_of_changes(&mut self.kernel, now, spec.flags, grows);
        let limit = self.limit_of_transactions();
        let (by_stamps, beside) = self.orders_of(keys);
        let mut names = keys.iter();
        let lattice = names.find_map(|key| self.kernel.placement().lattice(&key.1));
        let lattice = lattice.map(|keyspace| keyspace.name.clone());
        let Some(transaction) = self.connection(header.conn).map(|c| &mut c.transaction) else {
            return Ok(Runs::AsEver);
        };
        let Some(begun) = transaction.begun.as_mut() else {
            return Ok(Runs::AsEver);
        };
        if let Some(why) = &begun.given_up {
            return Err(given_up(why));
        }
        if begun.keyspaces != version {
            return Err(self.give_up(now, header.conn, TABLE_CHANGED));
        }
        if let Some(failure) = refused {
            return Err(failure);
        }
        if let Some(name) = lattice
            && begun.open.watches()
        {
            return Err(format!("ERR a key is in keyspace '{name}', which is of regime lattice: a serializable transaction has keys of regime strict alone").into());
        }
        let mut runs = begun.open.runs(writes, keys);
        let is_open = DataCommands::is_open(header.command, args);
        if runs == Runs::UnderStamp {
            begun.wrote = true;
            // Waiting for data might never end: its writer may wait for this transaction.
            let waits = DataCommands::may_wait(header.command);
            let at = begun.stamp.is_some() && by_stamps;
            if at && beside {
                return Err(TWO_ORDERS);
            }
            if !waits && !at {
                runs = Runs::AsEver;
            }
        }
        if is_open && (runs != Runs::AsEver || !begun.open.is_empty()) {
            return Err(OTHER_KEYS);
        }
        let bytes = transaction.bytes() + size_of_request(args);
        if runs == Runs::OnCopies && bytes > limit {
            return Err(self.give_up(now, header.conn, TOO_LARGE));
        }
        Ok(runs)
    }

    fn limit_of_transactions(&self) -> usize {
        self.config
            .client_query_buffer_limit
            .min(super::LARGEST_QUEUE)
    }

    /// Whether for some of these keys the write with the highest stamp counts, and whether some
    /// keep several values side by side: these have an order of their own, in which no write goes
    /// back in time.
    fn orders_of(&self, keys: &[KeyName]) -> (bool, bool) {
        let placement = self.kernel.placement();
        let all = keys.iter().filter_map(|key| placement.lattice(&key.1));
        all.fold((false, false), |(by_stamps, beside), keyspace| {
            let keeps = keyspace.level.keeps_siblings();
            (by_stamps || !keeps, beside || keeps)
        })
    }

    /// Runs a command of a transaction, or starts to.
    fn take_step(
        &mut self,
        now: Now,
        header: &Header,
        runs: Runs,
        keys: Vec<KeyName>,
        args: Args<'_>,
        out: &mut Output,
    ) -> Submitted {
        let mut batch = self.transactions.spare.take().unwrap_or_default();
        batch.push(*header, args);
        let (taken, watches) = match (runs, self.begun(header.conn)) {
            (Runs::OnCopies, Some(begun)) => (begun.open.missing(keys), begun.open.watches()),
            _ => (keys, false),
        };
        let watcher = self.connection(header.conn).map(|c| c.watcher());
        let step = Step {
            header: *header,
            batch,
            runs,
            taken,
            is_copied: false,
            watcher: watcher.filter(|_| watches),
        };
        if runs == Runs::OnCopies && self.apart(now).records(header.conn, &step.taken) {
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
        self.hold_for(step)
    }

    /// Has the keys of a command held.
    fn hold_for(&mut self, step: Step) -> Submitted {
        let plan = ExecPlan {
            exec: self.transactions.next,
            client: step.header.client,
            keys: step.taken.clone(),
            watched: Vec::new(),
            watcher: step.watcher,
            watches: step.watcher.is_some(),
            whole: false,
            touch: !step.header.no_touch,
        };
        self.transactions.next += 1;
        self.transactions.steps.insert(plan.exec, step);
        self.kernel.hold_all(plan);
        Submitted::Barrier
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
        let Some(mut begun) = self.take_begun(conn) else {
            // The watches began after the end of those of the transaction.
            if let (Some(watcher), false) = (step.watcher, step.is_copied) {
                self.end_watches(watcher, step.taken.iter());
            }
            return;
        };
        if let Some(why) = begun.given_up.as_ref().map(given_up) {
            Reply::new(out, step.header.resp3).error(&why);
            self.put_begun(conn, begun);
            self.end_with_transaction(&step);
            return self.transactions.keep(step.batch);
        }
        let start = out.mark();
        let version = self.kernel.keyspaces().version();
        let wrote = match step.runs {
            // The keyspaces changed while the keys were awaited.
            _ if begun.keyspaces != version => false,
            Runs::OnCopies => self.run_apart(now, &mut begun.open, &mut step, held, out),
            _ => {
                self.run_at_once(now, &mut begun, &mut step, held, out);
                false
            }
        };
        let limit = self.limit_of_transactions();
        let spec = self.table.spec(step.header.command);
        let spare = &mut self.transactions.spare;
        let Some(connection) = self.connections.get(conn) else {
            return;
        };
        let transaction = &mut connection.transaction;
        transaction.begun = Some(begun);
        if wrote {
            let (header, args, _) = step.batch.parts(0);
            transaction.keep(header, spec, args, spare);
        }
        let is_large = transaction.bytes() > limit;
        let is_old = transaction
            .begun
            .as_ref()
            .is_some_and(|begun| begun.keyspaces != version);
        if is_large || is_old {
            out.truncate(start);
            let why = if is_old { TABLE_CHANGED } else { TOO_LARGE };
            let failure = self.give_up(now, conn, why);
            Reply::new(out, step.header.resp3).error(&failure);
        }
        self.transactions.keep(step.batch);
    }

    /// Runs a command on copies. True if it has changed them.
    fn run_apart(
        &mut self,
        now: Now,
        open: &mut Open,
        step: &mut Step,
        held: Option<&mut HeldExec>,
        out: &mut Output,
    ) -> bool {
        if !step.is_copied {
            self.copy(now, open, step, held);
        }
        let spec = self.table.spec(step.header.command);
        let writes = spec.flags.has(Flags::WRITE);
        if writes {
            let keys = step.names(spec);
            open.before_change(&keys, &step.taken, now);
        }
        let done = if writes {
            // It takes over its arguments, which are needed again.
            let mut copy = step.batch.copy_of(0);
            let (header, args, _) = copy.parts(0);
            self.kernel.run_on_copies(open, now, &header, args, out)
        } else {
            let (header, args, _) = step.batch.parts(0);
            self.kernel.run_on_copies(open, now, &header, args, out)
        };
        open.end_command(std::mem::take(&mut step.taken), writes && done, now);
        writes && done
    }

    /// Copies the keys of a command, which are this node's.
    fn copy(&mut self, now: Now, open: &mut Open, step: &Step, held: Option<&mut HeldExec>) {
        let touch = !step.header.no_touch;
        if let (Some(watcher), None) = (step.watcher, &held) {
            self.watch_here(watcher, step.taken.iter(), now);
        }
        match held {
            Some(held) => self.kernel.copy_held(open, held, now),
            None => self.kernel.copy_here(open, &step.taken, touch, now),
        }
        self.end_with_transaction(step);
    }

    /// The watches of a command's keys end with its transaction.
    fn end_with_transaction(&mut self, step: &Step) {
        if step.watcher.is_some()
            && !step.is_copied
            && let Some(connection) = self.connection(step.header.conn)
        {
            let names = step.taken.iter().cloned();
            connection.transaction.watched.extend(names);
        }
    }

    fn run_at_once(
        &mut self,
        now: Now,
        begun: &mut Begun,
        step: &mut Step,
        held: Option<&mut HeldExec>,
        out: &mut Output,
    ) {
        let (header, args, _) = step.batch.parts(0);
        let mut stamp = begun.stamp;
        if let Some(held) = held {
            held.go_on_at(stamp);
            self.kernel.run_held(held, now, &header, None, args, out);
            stamp = held.stamp();
        } else {
            self.kernel.run_under(&mut stamp, now, &header, args, out);
        }
        if begun.promise.is_some() {
            begun.stamp = stamp;
        }
    }
}
