//! Transactions: several commands of one client on one gathering of keys.
//!
//! The embedder has the list of commands, some of which the kernel does not know. Where every key
//! is this worker's and free, it executes them one after the other with [`Worker::run_now`], in one
//! step. Otherwise it submits a plan with [`Worker::hold_all`], gets the transaction from
//! [`Worker::next_held`] once every key is held, executes its commands with [`Worker::run_held`]
//! and ends it with [`Worker::release_held`]. In between it may wait for any time: no other command
//! sees the keys.
//!
//! The owner of a watched key is asked whether it was touched while the key is held, so that the
//! answer is still true when the commands are executed.

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

/// The requirements of a transaction.
#[derive(Clone, Debug)]
pub struct ExecPlan {
    /// The embedder's number for it.
    pub exec: u64,
    /// The client; see [`Header::client`].
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
    /// A watched key was touched: nothing may be executed.
    pub dirty: bool,
    /// Some keys are of slots that this node does not serve: nothing may be executed.
    pub unserved: bool,
    /// It was returned to the embedder before, and has the keys that it waited for.
    pub resumed: bool,
    pub(super) multi: Multi,
    pub(super) scratch: Box<Shard>,
    /// Other keys for the next command.
    pub(super) borrowed: Borrowed,
    wrote: bool,
    /// The stamp of its next write.
    stamp: Option<Stamp>,
    /// What its client has seen of its keys.
    pub(super) contexts: Contexts,
}

impl HeldExec {
    /// Whether anything was changed so far.
    pub fn has_changes(&self) -> bool {
        self.wrote || !self.multi.actions.is_empty()
    }

    /// Sets the stamp for its further writes.
    pub fn go_on_at(&mut self, stamp: Option<Stamp>) {
        self.stamp = stamp;
    }

    /// The stamp of its next write.
    pub fn stamp(&self) -> Option<Stamp> {
        self.stamp
    }

    /// The current number of keys in a database: the returned count in addition to the owners' keys
    /// in the returned database, if any.
    pub fn count(&self, db: u8) -> (Option<u8>, i64) {
        let from = self.origin(db);
        let gathered = self.multi.gathered.iter();
        let shows = |g: &Gathered| g.entry.as_ref().is_some_and(Entry::shows);
        let before = gathered.filter(|g| Some(g.key.0) == from && shows(g));
        let now = self.scratch.len(usize::from(db));
        (from, now as i64 - before.count() as i64)
    }

    /// The database, before the transaction, of the keys that are in `db` now.
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
    /// Passed to the embedder and not released yet.
    pub(super) running: usize,
    /// Transactions that wait for keys of other workers, by the number in the replies.
    pub(super) borrowing: BTreeMap<u64, HeldExec>,
    /// A shard kept for the next one.
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
    /// Whether there are no holds and no waiters here.
    pub fn is_free(&self) -> bool {
        self.locks.is_idle() && self.chains.is_none()
    }

    /// Whether a key is this worker's, and neither held nor awaited.
    pub fn is_free_here(&self, now: Now, db: u8, key: &[u8]) -> bool {
        self.placement.owner(key) == self.id
            && !self.is_any_unserved(now, [key])
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
        // Its keys may have other owners by the time that they are held.
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

    /// The next transaction that may be executed.
    pub fn next_held(&mut self) -> Option<HeldExec> {
        let held = self.execs.ready.pop_front()?;
        self.execs.running += 1;
        Some(held)
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
        self.contexts.swap(&mut held.contexts);
        std::mem::swap(&mut self.shard, &mut *held.scratch);
        self.run_through(now, header, args, out);
        std::mem::swap(&mut self.shard, &mut *held.scratch);
        self.contexts.swap(&mut held.contexts);
        held.stamp = self.lattice.end_transaction();
        held.give_back(now);
        held.wrote |= P::is_write(header.command);
        held.multi.actions.extend(action);
    }

    /// Sends the changes of a transaction to the owners, releases its keys, and outputs its reply
    /// (all of `reply`) like that of a command.
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
            // After a flush or a swap, the entry here may differ from what the owner has after the
            // same action: then every key is sent.
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

    /// Everything is held: the embedder may execute the transaction.
    pub(super) fn ready_exec(&mut self, now: Now, exec: u64, multi: Multi) {
        let mut scratch = self.spare_shard();
        scratch
            .lattice_mut()
            .set_keying(self.lattice.keying(&self.placement));
        if !multi.dirty {
            load(&mut scratch, &multi.gathered, now);
        }
        let contexts = self
            .contexts
            .gathered(multi.client, &multi.gathered, &self.shard);
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

    /// Whether a key that the part's watcher watches here was touched.
    pub(super) fn is_dirty(&mut self, part: &Part, now: Now) -> bool {
        let Some(watcher) = part.watcher else {
            return false;
        };
        if self.is_any_lattice(&part.watched) {
            return true;
        }
        for (db, key) in &part.watched {
            // An access to an expired key removes it, and so touches it.
            let key = self.shard.key(key);
            let _ = self.shard.contains(usize::from(*db), key, now);
        }
        self.shard.observers().watches().is_dirty(watcher)
    }

    /// Whether a key is in a lattice keyspace that was created after the watch: there would be no
    /// timely report of changes by other replicas.
    fn is_any_lattice(&self, watched: &[KeyName]) -> bool {
        let mut keys = watched.iter();
        keys.any(|key| self.placement.lattice(&key.1).is_some())
    }

    /// The local equivalent of the question in [`Part`]: whether a key of this worker that
    /// `watcher` watches was touched.
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
        self.shard.observers().watches().is_dirty(watcher)
    }
}
