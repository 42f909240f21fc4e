//! Interactive transactions: each command is answered at once, and no key is held between commands.
//!
//! [`Transaction::runs`] tells the embedder where to execute a command. For a command on copies the
//! embedder has the missing keys copied: by [`Worker::copy_here`] where they are this worker's and
//! free; otherwise by [`Worker::copy_held`], after they are held as those of a transaction
//! ([`Worker::hold_all`]) until the command's reply. It keeps the commands that wrote, and executes
//! them again on the data at the end.

use super::spanning::gather;
use super::{HeldExec, Worker};
use crate::batch::Header;
use crate::lock::KeyName;
use crate::multi::Gathered;
use crate::planted::{self, Planted};
use crate::program::Program;
use crate::replicate::level::Level;
use crate::replicate::transaction::Transaction;
use crate::shard::ON_COPIES;
use rufous_base::actor::Garbage;
use rufous_base::{Args, Now, Output};
use rufous_lattice::Stamp;

/// A larger shard is not kept for the next transaction.
const KEEP_BYTES: usize = 256 << 10;

impl<P: Program> Worker<P> {
    pub fn open_transaction(&mut self, now: Now, level: Level) -> Transaction {
        let mut copies = self.spare_shard();
        // Changes of copies are not replicated.
        copies
            .lattice_mut()
            .set_keying(self.lattice.keying_of_copies(&self.placement));
        Transaction::new(level, copies, now)
    }

    /// Takes back the resources of a transaction.
    pub fn close_transaction(&mut self, transaction: Transaction) {
        let mut shard = transaction.into_shard();
        for garbage in shard.take_garbage() {
            self.shard.drop_later(garbage);
        }
        let bytes = shard.memory().total();
        if bytes <= KEEP_BYTES {
            self.execs.spare = Some(shard);
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
        for Gathered { key, entry, .. } in gather(&mut self.shard, self.id, keys, now) {
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

    /// Executes a command on copies of all keys that it names. False where its reply is an error.
    pub fn run_on_copies(
        &mut self,
        transaction: &mut Transaction,
        now: Now,
        header: &Header,
        args: Args<'_>,
        out: &mut Output,
    ) -> bool {
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
