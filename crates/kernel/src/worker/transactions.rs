//! The embedder's calls for transactions.
//!
//! Those of `MULTI` are described in [`super::spanning`]. Interactive ones (`BEGIN`) answer each
//! command at once, and hold no key between commands: [`Transaction::runs`] tells the embedder where
//! to execute a command. For a command on copies the embedder has the missing keys copied: by
//! [`Worker::copy_here`] where they are this worker's and free; otherwise by [`Worker::copy_held`],
//! after they are held as those of a transaction ([`Worker::hold_all`]) until the command's reply.
//! It keeps the commands that wrote, and executes them again on the data at the end.

use super::chains::Needs;
use super::linear::{Heads, Letter, LinearFigures, Posted, are_of};
use super::spanning::gather;
use super::{ExecPlan, HeldExec, Worker};
use crate::batch::Header;
use crate::lock::KeyName;
use crate::multi::{Gathered, NodeAction};
use crate::planted::{self, Planted};
use crate::program::Program;
use crate::replicate::transaction::isolation::Isolation;
use crate::replicate::transaction::{Instant, Transaction};
use crate::shard::{ON_COPIES, WatchId};
use rufous_base::actor::Garbage;
use rufous_base::{Args, Now, Output};
use rufous_lattice::Stamp;
use rufous_mapping::NodeNo;

/// A larger shard is not kept for the next transaction.
const KEEP_BYTES: usize = 256 << 10;

/// Transactions over slots: [`super::linear`].
impl<P: Program> Worker<P> {
    /// Begins a transaction of a client on these keys, each with whether it is written; `body`: [`crate::body`]. Its end is an
    /// [`super::Outcome::Transacted`], unless there is no client; call [`Worker::settle`] after it. False where the node has no
    /// part in a cluster.
    pub fn begin_transacting<'k>(
        &mut self,
        header: Option<&Header>,
        keys: impl IntoIterator<Item = (&'k [u8], bool)>,
        body: Vec<u8>,
    ) -> bool {
        Heads { worker: self }.begin(header, keys, body)
    }

    /// Likewise one that only reads these keys, and takes none of them if it need not: [`super::linear`].
    pub fn begin_reading<'k>(
        &mut self,
        now: Now,
        header: &Header,
        keys: impl Iterator<Item = &'k [u8]>,
        body: Vec<u8>,
    ) -> bool {
        Heads { worker: self }.begin_read(now, header, keys, body)
    }

    /// Transactions of clients here that have no outcome yet.
    pub fn waiting_transactions(&self) -> usize {
        self.linear.waiting()
    }

    /// A letter of a worker of another node. Call [`Worker::settle_peers`] after the last one that has come with it.
    pub fn on_letter(&mut self, from: NodeNo, letter: Letter) {
        self.linear.on_letter(from, letter);
    }

    /// Letters for workers of other nodes.
    pub fn take_letters(&mut self) -> Vec<Posted> {
        self.linear.take_posted()
    }

    /// So many writes were sent to copies within the message of another slot.
    pub fn on_joined(&mut self, writes: usize) {
        self.linear.on_joined(writes);
    }

    pub fn linear_figures(&self) -> LinearFigures {
        self.linear.figures()
    }
}

/// Transactions on held keys.
impl<P: Program> Worker<P> {
    /// Whether there are no holds and no waiters here.
    pub fn is_free(&self) -> bool {
        self.locks.is_idle() && self.chains.is_none()
    }

    /// Whether a key is this worker's, and neither held nor awaited.
    pub fn is_free_here(&self, now: Now, db: u8, key: &[u8]) -> bool {
        self.placement.owner(key) == self.id
            && !self.is_any_unserved(now, [key], Needs::Head)
            && (self.locks.is_idle() || !self.locks.blocks(db, key))
    }

    /// Executes a command on this worker's data. Every key that it names, or all data for a command
    /// on whole databases, must be this worker's and free. Call [`Worker::serve_waiters`] after the
    /// last one.
    pub fn run_now(&mut self, now: Now, header: &Header, args: Args<'_>, out: &mut Output) {
        self.run_through(now, header, args, out);
    }

    /// Holds everything that a transaction needs.
    pub fn hold_all(&mut self, plan: ExecPlan) {
        self.start(plan.into_multi(&self.placement));
    }

    /// The next transaction that may be executed.
    pub fn next_held(&mut self) -> Option<HeldExec> {
        self.spanning.next_held()
    }

    /// Executes a command of a held transaction on keys that the plan named, or on whole databases
    /// where the transaction holds everything. If the command's keys refer to others,
    /// [`Worker::with_others_held`] must have been called first.
    pub fn run_held(
        &mut self,
        held: &mut HeldExec,
        now: Now,
        header: &Header,
        action: Option<NodeAction>,
        args: Args<'_>,
        out: &mut Output,
    ) {
        self.lattice.resume_transaction(now, &mut held.stamp);
        if held.is_admitted {
            self.lattice.admit_transaction();
        }
        self.contexts.swap(&mut held.contexts);
        std::mem::swap(&mut self.shard, &mut *held.scratch);
        self.run_through(now, header, args, out);
        std::mem::swap(&mut self.shard, &mut *held.scratch);
        self.contexts.swap(&mut held.contexts);
        held.stamp = self.lattice.end_transaction();
        held.on_ran(now, P::is_write(header.command), action);
    }

    /// Fetches the keys that the next command of a transaction, which holds everything, reads
    /// beside the keys that it names. Returns the transaction if there is nothing to wait for;
    /// otherwise [`Worker::next_held`] returns it.
    pub fn with_others_held(
        &mut self,
        now: Now,
        held: HeldExec,
        header: &Header,
        args: &Args<'_>,
    ) -> Option<HeldExec> {
        self.span(now, |spanning, site| {
            spanning.on_open_command::<P>(held, header, args, site)
        })
    }

    /// Sends the changes of a transaction to the owners, releases its keys, and outputs its reply
    /// (all of `reply`) like that of a command.
    pub fn release_held(&mut self, held: HeldExec, now: Now, header: &Header, reply: Output) {
        self.span(now, |spanning, site| {
            spanning.on_end(held, Some((header, reply)), site);
        });
    }

    /// Releases the keys of a transaction that was not executed, without a reply.
    pub fn drop_held(&mut self, held: HeldExec, now: Now) {
        self.span(now, |spanning, site| spanning.on_end(held, None, site));
    }

    /// The local equivalent of the question in [`crate::multi::Part`]: whether a key of this worker
    /// that `watcher` watches was touched, or may have been, by another node.
    pub fn is_dirty_here(&mut self, watcher: WatchId, watched: &[KeyName], now: Now) -> bool {
        self.has_lost(now, watched) || store!(self).is_dirty(now, watcher, watched)
    }

    /// Whether this node does not serve the slot of a watched key of this worker: another node may
    /// have changed it.
    pub(super) fn has_lost(&self, now: Now, watched: &[KeyName]) -> bool {
        let keys = watched.iter().map(|(_, key)| &**key);
        let own = keys.filter(|key| self.placement.owner(key) == self.id);
        self.is_any_unserved(now, own, Needs::Head)
    }
}

/// Interactive transactions.
impl<P: Program> Worker<P> {
    pub fn open_transaction(&mut self, now: Now, isolation: Isolation) -> Transaction {
        let mut copies = self.spanning.spare_shard(&self.shard);
        // Changes of copies are not replicated.
        copies
            .lattice_mut()
            .set_keying(self.lattice.keying_of_copies(&self.placement));
        Transaction::new(isolation, copies, self.instant(now))
    }

    /// This reading of the clock, with the time from which deadlines of replicated keys count.
    pub fn instant(&self, now: Now) -> Instant {
        let lattice_ms = self.lattice.deadlines_ms(&self.shard, now);
        Instant { now, lattice_ms }
    }

    /// Takes back the resources of a transaction.
    pub fn close_transaction(&mut self, transaction: Transaction) {
        let mut shard = transaction.into_shard();
        for garbage in shard.take_garbage() {
            self.shard.drop_later(garbage);
        }
        let bytes = shard.memory().total();
        if bytes <= KEEP_BYTES {
            self.spanning.keep_shard(shard);
        } else {
            let what = shard;
            self.shard.drop_later(Garbage { bytes, what });
        }
    }

    /// Copies keys of this worker that are not held.
    pub fn copy_here(
        &mut self,
        transaction: &mut Transaction,
        keys: &[KeyName],
        touch: bool,
        now: Now,
    ) {
        self.shard.set_touch(touch);
        for Gathered { key, entry, .. } in gather(keys, now, &mut store!(self)) {
            transaction.copy(key, entry, now);
        }
    }

    /// Copies all keys that are held.
    pub fn copy_held(&mut self, transaction: &mut Transaction, held: &mut HeldExec, now: Now) {
        let client = held.multi.client;
        for gathered in &mut held.multi.gathered {
            if let Some(seen) = gathered.context.take() {
                let seen = [(gathered.key.clone(), seen)];
                self.contexts.note(client, &seen, &self.shard);
            }
            transaction.copy(gathered.key.clone(), gathered.entry.take(), now);
        }
    }

    /// Copies a key of another node, of which this value was told, as effects. False where it is none.
    pub fn copy_told(
        &mut self,
        transaction: &mut Transaction,
        key: KeyName,
        effects: &[u8],
        now: Now,
    ) -> bool {
        if !are_of(effects, |name| *name == key) {
            return false;
        }
        let at = transaction.now(now);
        transaction.copies().carry_out(effects, at);
        transaction.copy(key, None, now);
        true
    }

    /// Executes a command on copies of all keys that it names. False where its reply is an error.
    pub fn run_on_copies(
        &mut self,
        transaction: &mut Transaction,
        now: Now,
        header: &Header,
        args: Args<'_>,
        out: &mut Output,
    ) -> bool {
        self.lattice.look_at_clock(now, &mut transaction.copies);
        let now = transaction.now(now);
        let start = out.mark();
        // A reader of such a write has not thereby seen any real write.
        let mut stamp = self.stamp_on_copies(now);
        self.lattice.resume_transaction(now, &mut stamp);
        std::mem::swap(&mut self.shard, &mut *transaction.copies);
        self.run_through(now, header, args, out);
        std::mem::swap(&mut self.shard, &mut *transaction.copies);
        self.lattice.end_transaction();
        for garbage in transaction.copies.take_garbage() {
            self.shard.drop_later(garbage);
        }
        let lost = planted::is(Planted::CommitLosesCommand) && planted::now_and_then();
        !out.is_error(start) && !lost
    }

    /// A stamp of no worker, for writes that are made only on copies.
    fn stamp_on_copies(&mut self, now: Now) -> Option<Stamp> {
        let has_lattice = self.placement.has_lattice();
        has_lattice.then(|| Stamp {
            replica: ON_COPIES,
            ..self.lattice.stamp(now)
        })
    }

    /// As [`Worker::run_now`], under the next of a transaction's stamps.
    pub fn run_under(
        &mut self,
        stamp: &mut Option<Stamp>,
        now: Now,
        header: &Header,
        args: Args<'_>,
        out: &mut Output,
    ) {
        if planted::is(Planted::StampsApart) {
            return self.run_now(now, header, args, out);
        }
        self.lattice.resume_transaction(now, stamp);
        self.run_now(now, header, args, out);
        *stamp = self.lattice.end_transaction();
    }
}
