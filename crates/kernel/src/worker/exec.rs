//! Transactions: several commands of one client on one gathering of keys.
//!
//! The embedder has the list of commands, among them some that the kernel does
//! not know. Where every key is this worker's and free, it runs them one after
//! the other with [`Worker::run_now`], in one step. Otherwise it hands in a
//! plan with [`Worker::hold_all`], finds the transaction at
//! [`Worker::next_held`] once every key is held, runs its commands with
//! [`Worker::run_held`] and ends it with [`Worker::release_held`]. In between
//! it may wait for others as long as it likes: nobody else sees the keys.
//!
//! Whether a watched key was touched is asked at its owner while it is held,
//! so that the answer still holds when the commands run.

use super::Worker;
use super::contexts::seen_since;
use super::open::Borrowed;
use super::scratch::{discard, load, unload};
use super::spanning::Changes;
use crate::batch::{Batch, Header};
use crate::lock::KeyName;
use crate::multi::{Gathered, Multi, NodeAction, Part};
use crate::program::Program;
use crate::shard::{Contexts, Entry, Shard, WatchId};
use rufous_base::{Args, Now, Output, WorkerId};
use rufous_lattice::Stamp;
use std::collections::{BTreeMap, VecDeque};

/// What a transaction needs.
#[derive(Clone, Debug)]
pub struct ExecPlan {
    /// The embedder's number for it.
    pub exec: u64,
    /// Whose it is; see [`Header::client`].
    pub client: u64,
    /// Keys of its commands, in any order, repeats allowed.
    pub keys: Vec<KeyName>,
    pub watched: Vec<KeyName>,
    pub watcher: Option<WatchId>,
    /// It concerns whole databases: everything of every worker is held.
    pub whole: bool,
    pub touch: bool,
}

/// A transaction whose keys are held.
#[derive(Debug)]
pub struct HeldExec {
    /// The embedder's number for it.
    pub exec: u64,
    /// A watched key was touched: nothing may run.
    pub dirty: bool,
    /// Some keys are of slots that this node does not answer for: likewise.
    pub unserved: bool,
    /// It was handed out before, and has what it waited for.
    pub resumed: bool,
    pub(super) multi: Multi,
    pub(super) scratch: Box<Shard>,
    /// For the command that runs next.
    pub(super) borrowed: Borrowed,
    wrote: bool,
    /// Of its next write.
    stamp: Option<Stamp>,
    /// What its client has seen of its keys.
    pub(super) contexts: Contexts,
}

impl HeldExec {
    /// Whether anything was changed so far.
    pub fn has_changes(&self) -> bool {
        self.wrote || !self.multi.actions.is_empty()
    }

    /// Its writes go on with this stamp.
    pub fn go_on_at(&mut self, stamp: Option<Stamp>) {
        self.stamp = stamp;
    }

    /// Of its next write.
    pub fn stamp(&self) -> Option<Stamp> {
        self.stamp
    }

    /// How many keys a database has by now: so many more than the owners have
    /// in the database given first, or in none.
    pub fn count(&self, db: u8) -> (Option<u8>, i64) {
        let from = self.origin(db);
        let gathered = self.multi.gathered.iter();
        let shows = |g: &Gathered| g.entry.as_ref().is_some_and(Entry::shows);
        let before = gathered.filter(|g| Some(g.key.0) == from && shows(g));
        let now = self.scratch.len(usize::from(db));
        (from, now as i64 - before.count() as i64)
    }

    /// Where what is now in `db` was before the transaction.
    pub(super) fn origin(&self, db: u8) -> Option<u8> {
        let mut from = Some(db);
        for action in self.multi.actions.iter().rev() {
            from = match (*action, from) {
                (NodeAction::FlushAll, _) => None,
                (NodeAction::FlushDb(flushed), Some(at)) if at == flushed => None,
                (NodeAction::SwapDb(a, b), Some(at)) if at == a => Some(b),
                (NodeAction::SwapDb(a, b), Some(at)) if at == b => Some(a),
                (_, at) => at,
            };
        }
        from
    }
}

/// The transactions of a worker that are held and wait for the embedder.
#[derive(Debug)]
pub(super) struct Execs {
    hash_seed: u64,
    pub(super) ready: VecDeque<HeldExec>,
    /// Handed to the embedder and not released yet.
    pub(super) running: usize,
    /// Wait for keys of other workers, by the number that these answer to.
    pub(super) borrowing: BTreeMap<u64, HeldExec>,
    /// For the next one.
    pub(super) spare: Option<Box<Shard>>,
}

impl Execs {
    pub(super) fn new(hash_seed: u64) -> Self {
        Self {
            hash_seed,
            ready: VecDeque::new(),
            running: 0,
            borrowing: BTreeMap::new(),
            spare: None,
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.ready.len() + self.running + self.borrowing.len()
    }
}

impl<P: Program> Worker<P> {
    /// Whether nobody holds or awaits anything here.
    pub fn is_free(&self) -> bool {
        self.locks.is_idle() && self.chains.is_none()
    }

    /// Whether a key is this worker's and nobody holds or awaits it.
    pub fn is_free_here(&self, now: Now, db: u8, key: &[u8]) -> bool {
        self.placement.owner(key) == self.id
            && !self.is_any_unserved(now, [key])
            && (self.locks.is_idle() || !self.locks.blocks(db, key))
    }

    /// Runs a command on this worker's data. Every key that it names, or all
    /// data for one on whole databases, must be this worker's and free. The
    /// last is followed by [`Worker::serve_waiters`].
    pub fn run_now(&mut self, now: Now, header: &Header, args: Args<'_>, out: &mut Output) {
        self.run_through(now, header, args, out);
    }

    /// Holds everything that a transaction needs.
    pub fn hold_all(&mut self, plan: ExecPlan) {
        // Its keys may be others' by the time that they are held.
        let again = plan.clone();
        let mut parts = BTreeMap::<WorkerId, Part>::new();
        if plan.whole {
            let all = (0..self.placement.workers()).map(|w| (WorkerId(w as u16), Part::default()));
            parts.extend(all);
        }
        for key in plan.keys {
            let owner = self.placement.owner(&key.1);
            parts.entry(owner).or_default().keys.push(key);
        }
        for key in plan.watched {
            let part = parts.entry(self.placement.owner(&key.1)).or_default();
            part.watcher = plan.watcher;
            part.watched.push(key);
        }
        for part in parts.values_mut() {
            part.keys.sort_unstable();
            part.keys.dedup();
        }
        let mut multi = Multi::on_exec(plan.exec, parts, plan.whole, plan.touch);
        multi.client = plan.client;
        multi.plan = Some(Box::new(again));
        self.start(multi);
    }

    /// The next transaction that may run.
    pub fn next_held(&mut self) -> Option<HeldExec> {
        let held = self.execs.ready.pop_front()?;
        self.execs.running += 1;
        Some(held)
    }

    /// Runs a command of a held transaction, on keys that the plan named, or
    /// one that acts on whole databases where it holds everything. One whose
    /// keys tell of others went through [`Worker::with_others_held`].
    pub fn run_held(
        &mut self,
        held: &mut HeldExec,
        now: Now,
        header: &Header,
        action: Option<NodeAction>,
        args: Args<'_>,
        out: &mut Output,
    ) {
        self.resume_transaction(now, &mut held.stamp);
        self.swap_contexts(held);
        std::mem::swap(&mut self.shard, &mut *held.scratch);
        self.run_through(now, header, args, out);
        std::mem::swap(&mut self.shard, &mut *held.scratch);
        self.swap_contexts(held);
        held.stamp = self.end_transaction();
        held.give_back(now);
        held.wrote |= P::is_write(header.command);
        held.multi.actions.extend(action);
    }

    /// Sends home what a transaction changed, lets go of its keys, and hands
    /// out its reply (all of `reply`) as that of a command would be.
    pub fn release_held(&mut self, mut held: HeldExec, now: Now, header: &Header, reply: Output) {
        self.execs.running -= 1;
        let Multi {
            held: tickets,
            gathered,
            actions,
            client,
            ..
        } = held.multi;
        let seen = seen_since(client, &gathered, &mut held.contexts, &self.shard);
        let writes = match held.wrote {
            // What a flush or a swap left of a key need not be what the owner
            // makes of it: then every key is told.
            true => unload(&mut held.scratch, gathered, !actions.is_empty(), now),
            false => discard(&mut held.scratch, &gathered, now),
        };
        self.execs.spare = Some(held.scratch);
        let mut replies = Box::<Batch>::default();
        replies.push_reply(*header, reply);
        let changes = Changes {
            writes,
            actions: &actions,
            table: None,
            client,
            seen,
        };
        self.scatter(now, tickets, changes, (self.id, replies));
    }

    /// Everything is held: the embedder may run the transaction.
    pub(super) fn ready_exec(&mut self, now: Now, exec: u64, multi: Multi) {
        let mut scratch = self.spare_shard();
        scratch.set_keying(self.keying());
        if !multi.dirty {
            load(&mut scratch, &multi.gathered, now);
        }
        let contexts = self.gathered_contexts(multi.client, &multi.gathered);
        self.execs.ready.push_back(HeldExec {
            contexts,
            exec,
            dirty: multi.dirty,
            unserved: multi.unserved,
            resumed: false,
            multi,
            scratch,
            borrowed: Borrowed::default(),
            wrote: false,
            stamp: None,
        });
    }

    /// An empty shard to run commands on.
    pub(super) fn spare_shard(&mut self) -> Box<Shard> {
        let (spare, seed) = (self.execs.spare.take(), self.execs.hash_seed);
        let mut shard = spare.unwrap_or_else(|| Box::new(Shard::new(seed)));
        shard.set_policy(self.shard.policy());
        shard.set_tuning(*self.shard.tuning());
        shard
    }

    /// Whether a key was touched that the part's watcher watches here.
    pub(super) fn is_dirty(&mut self, part: &Part, now: Now) -> bool {
        let Some(watcher) = part.watcher else {
            return false;
        };
        if self.is_any_lattice(&part.watched) {
            return true;
        }
        for (db, key) in &part.watched {
            // Who meets an expired key removes it, and so touches it.
            let key = self.shard.key(key);
            let _ = self.shard.contains(usize::from(*db), key, now);
        }
        self.shard.is_dirty(watcher)
    }

    /// Whether the keyspace of a key has been made since it was watched: what
    /// other replicas do to it now nobody would be told in time.
    fn is_any_lattice(&self, watched: &[KeyName]) -> bool {
        let mut keys = watched.iter();
        keys.any(|key| self.placement.lattice(&key.1).is_some())
    }

    /// As [`Part`] is asked at other workers: whether a key of this worker's
    /// that `watcher` watches was touched.
    pub fn is_dirty_here(&mut self, watcher: WatchId, watched: &[KeyName], now: Now) -> bool {
        if self.is_any_lattice(watched) {
            return true;
        }
        for (db, key) in watched {
            if self.placement.owner(key) == self.id {
                let key = self.shard.key(key);
                let _ = self.shard.contains(usize::from(*db), key, now);
            }
        }
        self.shard.is_dirty(watcher)
    }
}
