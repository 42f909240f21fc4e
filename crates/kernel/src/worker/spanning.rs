//! Commands and transactions over keys of several workers: [`crate::multi`] has the protocol.
//! Linear transactions will replace this folder.
//!
//! The worker passes these events to [`Spanning`], each with a [`Site`], which has what handlers
//! borrow of the worker:
//!
//! - A command or transaction begins: [`Spanning::on_command`].
//! - Owners of keys report: [`Spanning::on_acquired`], [`Spanning::on_fetched`],
//!   [`Spanning::on_settled`], [`Spanning::on_committed`], [`Spanning::on_doubtful`].
//! - It was executed: [`Spanning::on_ran`] for a command, [`Spanning::on_end`] for a transaction,
//!   which the embedder executes between [`Spanning::next_held`] and its end.
//!
//! Requests for keys go to the lock table, or as messages to the owners. Everything else is a
//! [`Call`] that the worker carries out before calls of earlier events, since a command begins where
//! another one ends: [`Call::Begin`], [`Call::Run`], [`Call::Ready`], [`Call::Drain`],
//! [`Call::Release`], [`Call::Unlock`] and [`Call::Answer`].
//!
//! `held` is what is decided once all keys are held, `delays` the commands that wait until this node serves their
//! slots, `others` the keys that a command reads without
//! naming them, `commits` what becomes of the changes, `exec` transactions, and `scratch` the shard
//! on which commands are executed. `owner` is the part of a worker whose keys are held.

mod commits;
mod delays;
mod exec;
mod held;
mod others;
mod owner;
mod scratch;
#[cfg(test)]
mod tests;

pub use delays::Delay;
pub use exec::{ExecPlan, HeldExec};
pub(super) use held::again;
pub use owner::{Hold, Release};
pub(super) use owner::{gather, names_only};
pub(super) use scratch::{begin, effects_of, end, put_back};

use super::chains::{Gap, SlotView};
use super::out::{Call, Out};
use super::store::Store;
use super::{Message, Work};
use crate::batch::Header;
use crate::lock::{LockTable, Ticket};
use crate::multi::{Multi, Seen, Visit};
use crate::program::Program;
use crate::shard::{Contexts, Keying, Shard};
use commits::{Commits, Ran};
use delays::Delays;
use exec::Execs;
use rufous_base::{Now, Output, WorkerId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What handlers borrow of the worker.
#[derive(Debug)]
pub(super) struct Site<'a> {
    pub(super) now: Now,
    pub(super) locks: &'a mut LockTable<Work>,
    pub(super) store: Store<'a>,
    /// `None` where the node is not one of several.
    pub(super) slots: Option<SlotView<'a>>,
    /// The version of the table of keyspaces.
    pub(super) table: u64,
    /// The latest time of stamps that were issued or observed here.
    pub(super) time: u64,
    /// Whether replies wait for a log or for chains.
    pub(super) commits: bool,
    pub(super) out: &'a mut Out,
}

impl Site<'_> {
    /// Distinguishes the table from earlier ones.
    fn mark(&self) -> u16 {
        self.table as u16
    }

    /// Makes a call to be carried out before those of earlier events.
    fn call(&mut self, call: Call) {
        self.out.call_first(call);
    }
}

/// See the module's description.
#[derive(Debug)]
pub(super) struct Spanning {
    /// Where commands are executed; empty between them.
    scratch: Shard,
    /// Commands that gather keys, or wait for workers to be equal.
    multis: BTreeMap<u64, Multi>,
    /// The number of the next command in messages between workers.
    next: u64,
    commits: Commits,
    execs: Execs,
    delays: Delays,
}

impl Spanning {
    pub(super) fn new(hash_seed: u64) -> Self {
        Self {
            scratch: Shard::new(hash_seed),
            multis: BTreeMap::new(),
            next: 0,
            commits: Commits::default(),
            execs: Execs::new(hash_seed),
            delays: Delays::default(),
        }
    }

    /// The number of this start of the node.
    pub(super) fn on_run(&mut self, run: u64) {
        self.commits.on_run(run);
    }

    /// A table of keyspaces was adopted.
    pub(super) fn on_table(&mut self, keying: Option<Arc<dyn Keying>>) {
        self.scratch.lattice_mut().set_keying(keying);
    }

    /// Commands and transactions of this worker's clients that are not answered yet.
    pub(super) fn len(&self) -> usize {
        self.multis.len() + self.commits.len() + self.execs.waiting() + self.delays.len()
    }

    /// Does a bounded part of the memory maintenance. True where more is left.
    pub(super) fn maintain_step(&mut self, budget: usize) -> bool {
        self.scratch.maintain_step(budget)
    }

    /// Commands that wait for slots.
    pub(super) fn delays(&self) -> &Delays {
        &self.delays
    }

    /// The node stops: no command waits for slots any more.
    pub(super) fn on_stop(&mut self, site: &mut Site<'_>) {
        self.delays.on_stop();
        self.delays.on_time(site);
    }

    /// Time has passed: commands that wait for slots may begin again.
    pub(super) fn on_time(&mut self, site: &mut Site<'_>) {
        self.delays.on_time(site);
    }

    fn next_number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// A command or transaction of worker `id` begins.
    pub(super) fn on_command(
        &mut self,
        multi: Multi,
        id: WorkerId,
        locks: &mut LockTable<Work>,
        out: &mut Out,
    ) {
        let number = self.next_number();
        self.multis.insert(number, multi);
        let finished = self.visit_next(number, id, locks, out);
        debug_assert!(
            !finished,
            "a command that spans workers visits at least one"
        );
    }

    /// Requests the hold of the next worker. True where all have been visited.
    fn visit_next(
        &mut self,
        number: u64,
        id: WorkerId,
        locks: &mut LockTable<Work>,
        out: &mut Out,
    ) -> bool {
        let Some(multi) = self.multis.get_mut(&number) else {
            return true;
        };
        let (client, touch) = (multi.client, multi.touch);
        let Some(Visit {
            worker,
            scope,
            part,
        }) = multi.next_visit()
        else {
            return true;
        };
        let multi = number;
        if worker == id {
            let hold = Work::Hold {
                multi,
                coordinator: worker,
                client,
                touch,
                part,
            };
            locks.acquire(scope, hold);
        } else {
            let acquire = Message::Acquire {
                multi,
                scope,
                client,
                touch,
                part,
            };
            out.send(worker, acquire);
        }
        false
    }

    /// A worker holds its keys of a command.
    pub(super) fn on_acquired<P: Program>(
        &mut self,
        number: u64,
        by: (WorkerId, Ticket),
        hold: Hold,
        site: &mut Site<'_>,
    ) {
        let Some(multi) = self.multis.get_mut(&number) else {
            debug_assert!(false, "a hold for a command that is not under way");
            return;
        };
        multi.held.push(by);
        multi.gathered.extend(hold.gathered);
        multi.dirty |= hold.dirty;
        multi.unserved = Gap::worse(multi.unserved, hold.unserved);
        multi.unread = Gap::worse(multi.unread, hold.unread);
        multi.findings.add(hold.findings);
        if self.visit_next(number, site.store.id, site.locks, site.out)
            && let Some(multi) = self.multis.remove(&number)
        {
            self.on_all_held::<P>(multi, site);
        }
    }

    /// The keys of a transaction are held: the embedder may execute it. `contexts`: what its client
    /// has seen of them.
    pub(super) fn on_ready(
        &mut self,
        multi: Multi,
        keying: Option<Arc<dyn Keying>>,
        contexts: Contexts,
        site: &mut Site<'_>,
    ) {
        let mut scratch = self.execs.spare_shard(site.store.shard);
        scratch.lattice_mut().set_keying(keying);
        if !multi.dirty {
            scratch::load(&mut scratch, &multi.gathered, site.now);
        }
        self.execs
            .ready
            .push_back(HeldExec::new(multi, scratch, contexts));
    }

    /// The next transaction that the embedder may execute.
    pub(super) fn next_held(&mut self) -> Option<HeldExec> {
        self.execs.next_held()
    }

    /// The embedder has executed a transaction: its keys are released, and its reply is output like that of a
    /// command. `None`: it was not executed.
    pub(super) fn on_end(
        &mut self,
        held: HeldExec,
        reply: Option<(&Header, Output)>,
        site: &mut Site<'_>,
    ) {
        let ran = self.execs.on_end(held, reply, site);
        self.scatter(ran, site);
    }

    /// A command is about to be executed on [`Spanning::scratch`], with the settings of `like`.
    pub(super) fn begin_run(&mut self, multi: &Multi, now: Now, like: &Shard) {
        self.scratch.set_policy(like.policy());
        self.scratch.set_tuning(*like.tuning());
        scratch::load(&mut self.scratch, &multi.gathered, now);
    }

    pub(super) fn scratch(&mut self) -> &mut Shard {
        &mut self.scratch
    }

    /// A command was executed on the scratch shard. `origin`: the worker to reply to; the changes
    /// are dropped where there is none. `seen`: what the client has seen of the keys since.
    pub(super) fn on_ran<P: Program>(
        &mut self,
        mut multi: Multi,
        origin: Option<WorkerId>,
        seen: BTreeMap<WorkerId, Seen>,
        site: &mut Site<'_>,
    ) {
        let gathered = std::mem::take(&mut multi.gathered);
        let mut requests = multi.batch.requests.iter();
        let is_write = requests.any(|r| P::is_write(r.header.command));
        let writes = if is_write && origin.is_some() {
            scratch::unload(&mut self.scratch, gathered, false, site.now)
        } else {
            scratch::discard(&mut self.scratch, &gathered, site.now)
        };
        if origin.is_none() {
            multi.batch = Box::default();
        }
        let ran = Ran {
            writes,
            seen,
            ..Ran::without_writes(multi, origin.unwrap_or(site.store.id))
        };
        self.scatter(ran, site);
    }

    /// Sends the changes of an executed command to the owners of its keys.
    fn scatter(&mut self, ran: Ran, site: &mut Site<'_>) {
        let number = self.next_number();
        self.commits.on_ran(number, ran, site);
    }

    /// A worker has committed its part of a command.
    pub(super) fn on_committed(&mut self, number: u64, site: &mut Site<'_>) {
        self.commits.on_committed(number, site);
    }

    /// A worker may not commit its part for a long time.
    pub(super) fn on_doubtful(&mut self, number: u64, site: &mut Site<'_>) {
        self.commits.on_doubtful(number, site);
    }

    /// An empty shard to execute commands on, with the settings of `like`.
    pub(super) fn spare_shard(&mut self, like: &Shard) -> Box<Shard> {
        self.execs.spare_shard(like)
    }

    /// Takes back an empty shard.
    pub(super) fn keep_shard(&mut self, shard: Box<Shard>) {
        self.execs.keep(shard);
    }
}
