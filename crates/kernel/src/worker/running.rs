//! Execution of commands on this worker's shard, and their counters.

use super::exchange::Ran;
use super::waiting::{NoData, Reach};
use super::{Submitted, Worker};
use crate::batch::{Batch, Header, ReplyRange, Status};
use crate::lock::{KeyName, Scope, Ticket};
use crate::planted::{self, Planted};
use crate::program::{Context, Program, Wait};
use crate::stats::CommandStats;
use rufous_base::{Args, Now, Output, WorkerId};

impl<P: Program> Worker<P> {
    /// Executes a command. If it would wait, it is not counted, and its reply is the one for a
    /// timeout.
    pub(super) fn run(
        &mut self,
        now: Now,
        header: &Header,
        args: Args<'_>,
        out: &mut Output,
    ) -> Option<Wait> {
        self.shard.set_touch(!header.no_touch);
        let has_lattice = self.placement.has_lattice()
            && !self.knows_strict(header.strict_in)
            && P::may_concern_lattice(header.command, &args, &self.placement);
        let start = out.mark();
        if has_lattice && !self.begin_lattice(now, header, &args, out) {
            self.note(header.command, false);
            return None;
        }
        let mut context = Context {
            shard: &mut self.shard,
            db: usize::from(header.db),
            now,
            resp3: header.resp3,
            quiet: header.quiet,
            out: &mut *out,
            rng: &mut self.rng,
            hash: header.hash,
            wait: None,
        };
        if header.quiet && planted::is(Planted::QuietNotRun) && planted::now_and_then() {
            context.out.bytes.extend_from_slice(b"+OK\r\n");
            return None;
        }
        let mut succeeded = P::run(header.command, &mut context, args);
        let wait = context.wait;
        if has_lattice {
            succeeded &= self.end_lattice(now, header, (out, start));
        }
        if wait.is_none() {
            self.note(header.command, succeeded);
        }
        wait
    }

    /// Executes a command that may not wait.
    pub(super) fn run_through(
        &mut self,
        now: Now,
        header: &Header,
        args: Args<'_>,
        out: &mut Output,
    ) {
        if self.run(now, header, args, out).is_some() {
            self.note(header.command, true);
        }
    }

    /// Executes a request of this worker's client whose keys are not held. `keys` are databases and
    /// argument indexes.
    #[inline]
    pub(super) fn submit_free(
        &mut self,
        now: Now,
        header: &Header,
        keys: &[(u8, u32)],
        args: Args<'_>,
        out: &mut Output,
    ) -> Submitted {
        let slots = self.slots_of(keys.iter().map(|&(_, i)| args.get(i as usize)));
        let ran = Ran {
            slots: &slots,
            origin: self.id,
            start: out.mark(),
        };
        let named = |args: &Args<'_>| names_of(keys, args);
        match self.run_or_wait(now, header, args, self.id, named, out) {
            Status::Ready if self.withholds(ran, header, out) => Submitted::Pending,
            Status::Ready => Submitted::Done,
            Status::Later => Submitted::Barrier,
            Status::NotHere => Submitted::NotHere,
        }
    }

    /// Executes a request of `origin`, unless it has to be refused; `named` returns its keys, all
    /// of them this worker's. True if it waits now.
    #[inline]
    pub(super) fn run_or_wait(
        &mut self,
        now: Now,
        header: &Header,
        mut args: Args<'_>,
        origin: WorkerId,
        named: impl FnOnce(&Args<'_>) -> Vec<KeyName>,
        out: &mut Output,
    ) -> Status {
        let mut named = Some(named);
        let mut names = |args: &Args<'_>| named.take().map_or_else(Vec::new, |named| named(args));
        if let Some(status) = self.holds_back(now, header, &mut args, (origin, &mut names), out) {
            return status;
        }
        if !self.may_run(now, header, out) {
            let is_full = self.refuses_writes().is_none();
            if is_full && planted::is(Planted::RefusedAndDone) && planted::now_and_then() {
                self.run(now, header, args, &mut Output::default());
            }
            return Status::Ready;
        }
        let start = out.mark();
        if let Some(wait) = self.run(now, header, args.reborrow(), out) {
            let reach = Reach::Here(names(&args));
            let mut batch = self.batch_of(header, args);
            move_reply(out, start, &mut batch);
            self.begin_wait(
                now,
                NoData {
                    origin,
                    batch,
                    wait,
                    reach,
                },
            );
            return Status::Later;
        }
        self.serve_waiters(now);
        Status::Ready
    }

    /// Executes a request that waited for its keys, which it holds now.
    pub(super) fn run_parked(
        &mut self,
        now: Now,
        ticket: Ticket,
        mut batch: Box<Batch>,
        origin: WorkerId,
    ) -> Box<Batch> {
        let is_stale = batch.requests[0].table != self.table_mark();
        let (header, mut args, out) = batch.parts(0);
        let start = out.mark();
        let mut status = Status::Ready;
        let keys = match self.locks.scope(ticket) {
            Some(Scope::Keys(keys)) => &keys[..],
            _ => &[],
        };
        let keys = keys.iter().map(|key| &*key.1);
        let is_refused =
            is_stale && store!(self).refuses_stale::<P>(origin, &header, &args, keys, out);
        if !is_refused
            && self.may_run(now, &header, out)
            && let Some(wait) = self.run(now, &header, args.reborrow(), out)
        {
            let reach = Reach::Here(match self.locks.scope(ticket) {
                Some(Scope::Keys(keys)) => keys.clone(),
                _ => Vec::new(),
            });
            let mut copy = self.batch_of(&header, args);
            move_reply(out, start, &mut copy);
            let batch = copy;
            self.begin_wait(
                now,
                NoData {
                    origin,
                    batch,
                    wait,
                    reach,
                },
            );
            status = Status::Later;
        }
        let end = batch.replies.mark();
        batch.requests[0].reply = ReplyRange { start, end, status };
        batch
    }

    /// Executes the one request of a batch, unless it has to be refused. If it would wait, its
    /// reply is the one for a timeout.
    pub(super) fn run_one(&mut self, now: Now, batch: &mut Batch, ask: bool) -> Option<Wait> {
        let is_stale = batch.requests[0].table != self.table_mark();
        let (header, args, out) = batch.parts(0);
        let start = out.mark();
        let wait = if is_stale
            && P::refuse_on_lattice(header.command, &args, &self.placement, header.resp3, out)
        {
            None
        } else if !ask || self.may_run(now, &header, out) {
            self.run(now, &header, args, out)
        } else {
            None
        };
        let end = out.mark();
        batch.requests[0].reply = ReplyRange {
            start,
            end,
            status: Status::Ready,
        };
        wait
    }

    /// The result of submitting a request whose reply is computed later.
    pub(super) fn pending(header: &Header) -> Submitted {
        match P::may_wait(header.command) {
            true => Submitted::Barrier,
            false => Submitted::Pending,
        }
    }

    /// Counts a command that was executed, here or at the embedder.
    pub fn note(&mut self, command: u16, succeeded: bool) {
        self.unaccounted.push(command);
        if !succeeded {
            self.stats[usize::from(command)].failed += 1;
        }
    }

    /// Distributes the time since the clock was last read over the commands executed meanwhile.
    /// Returns nanoseconds per command.
    pub fn account(&mut self, elapsed_us: u64) -> u64 {
        let calls = self.unaccounted.len() as u64;
        if calls == 0 {
            return 0;
        }
        let each_ns = elapsed_us * 1000 / calls;
        for command in self.unaccounted.drain(..) {
            self.stats[usize::from(command)].record(1, each_ns);
        }
        each_ns
    }

    /// Whether commands were executed whose time is not accounted for.
    pub fn has_unaccounted(&self) -> bool {
        !self.unaccounted.is_empty()
    }

    pub fn stats(&self) -> &[CommandStats] {
        &self.stats
    }

    pub fn stats_mut(&mut self) -> &mut [CommandStats] {
        &mut self.stats
    }
}

/// The keys of a request, given as databases and argument indexes.
pub(super) fn names_of(keys: &[(u8, u32)], args: &Args<'_>) -> Vec<KeyName> {
    let names = keys.iter();
    let names = names.map(|&(db, i)| (db, args.get(i as usize).into()));
    names.collect()
}

/// Moves the end of an output, from `start` on, into a batch of one request: its reply so far.
#[cold]
fn move_reply(out: &mut Output, start: (usize, usize), batch: &mut Batch) {
    batch.replies.append_range(out, start, out.mark());
    out.truncate(start);
}
