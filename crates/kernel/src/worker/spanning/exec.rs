//! Transactions: several commands of one client on one gathering of keys.
//!
//! The embedder has the list of commands, some of which the kernel does not know. Where every key
//! is this worker's and free, it executes them one after the other with
//! [`crate::Worker::run_now`], in one step. Otherwise it submits a plan with
//! [`crate::Worker::hold_all`], gets the transaction from [`crate::Worker::next_held`] once every
//! key is held, executes its commands with [`crate::Worker::run_held`] and ends it with
//! [`crate::Worker::release_held`]. In between it may wait for any time: no other command sees the
//! keys.
//!
//! The owner of a watched key is asked whether it was touched while the key is held, so that the
//! answer is still true when the commands are executed.

use super::Site;
use super::commits::Ran;
use super::others::Borrowed;
use super::scratch::{discard, unload};
use crate::batch::{Batch, Header};
use crate::lock::KeyName;
use crate::multi::{Gathered, Multi, NodeAction, Part};
use crate::placement::Placement;
use crate::shard::{Contexts, Entry, Shard, WatchId};
use crate::worker::contexts::seen_since;
use rufous_base::{Now, Output, WorkerId};
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
    /// The watcher watches the keys of its commands from now on.
    pub watches: bool,
    /// It concerns whole databases: everything of every worker is held.
    pub whole: bool,
    pub touch: bool,
}

impl ExecPlan {
    /// The transaction as a command in progress.
    pub(in crate::worker) fn into_multi(self, placement: &Placement) -> Multi {
        let plan = self;
        // Its keys may have other owners by the time that they are held.
        let again = plan.clone();
        let mut parts = BTreeMap::<WorkerId, Part>::new();
        if plan.whole {
            let all = (0..placement.workers()).map(|w| (WorkerId(w as u16), Part::default()));
            parts.extend(all);
        }
        for key in plan.keys {
            let owner = placement.owner(&key.1);
            parts.entry(owner).or_default().keys.push(key);
        }
        for key in plan.watched {
            let part = parts.entry(placement.owner(&key.1)).or_default();
            part.watcher = plan.watcher;
            part.watched.push(key);
        }
        for part in parts.values_mut() {
            part.records = plan.watcher.filter(|_| plan.watches);
            part.keys.sort_unstable();
            part.keys.dedup();
        }
        let mut multi = Multi::on_exec(plan.exec, parts, plan.whole, plan.touch);
        multi.client = plan.client;
        multi.plan = Some(Box::new(again));
        multi
    }
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
    pub(in crate::worker) multi: Multi,
    pub(in crate::worker) scratch: Box<Shard>,
    /// Other keys for the next command.
    pub(super) borrowed: Borrowed,
    wrote: bool,
    /// Clocks were judged when it began; see [`HeldExec::admit`].
    pub(in crate::worker) is_admitted: bool,
    /// The stamp of its next write.
    pub(in crate::worker) stamp: Option<Stamp>,
    /// What its client has seen of its keys.
    pub(in crate::worker) contexts: Contexts,
}

impl HeldExec {
    pub(super) fn new(multi: Multi, scratch: Box<Shard>, contexts: Contexts) -> Self {
        Self {
            exec: multi.exec.unwrap_or_default(),
            dirty: multi.dirty,
            unserved: multi.unserved.is_some(),
            resumed: false,
            multi,
            scratch,
            borrowed: Borrowed::default(),
            wrote: false,
            is_admitted: false,
            stamp: None,
            contexts,
        }
    }

    /// A command was executed on the scratch shard.
    pub(in crate::worker) fn on_ran(&mut self, now: Now, writes: bool, action: Option<NodeAction>) {
        self.give_back(now);
        self.wrote |= writes;
        self.multi.actions.extend(action);
    }

    /// Whether anything was changed so far.
    pub fn has_changes(&self) -> bool {
        self.wrote || !self.multi.actions.is_empty()
    }

    /// None of its commands changes anything.
    pub fn undo(&mut self) {
        self.wrote = false;
        self.multi.actions.clear();
    }

    /// It is executed whole from now on, even if clocks begin to lead too far before its end.
    pub fn admit(&mut self) {
        self.is_admitted = true;
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
    /// Passed to the embedder and not ended yet.
    pub(super) running: usize,
    /// Transactions that wait for keys of other workers, by the number in the replies.
    pub(super) borrowing: BTreeMap<u64, HeldExec>,
    /// A shard kept for the next one.
    spare: Option<Box<Shard>>,
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

    /// The next transaction that may be executed.
    pub(super) fn next_held(&mut self) -> Option<HeldExec> {
        let held = self.ready.pop_front()?;
        self.running += 1;
        Some(held)
    }

    /// The embedder has executed a transaction, and this is its reply; `None`: it was not executed.
    pub(super) fn on_end(
        &mut self,
        mut held: HeldExec,
        reply: Option<(&Header, Output)>,
        site: &Site<'_>,
    ) -> Ran {
        self.running -= 1;
        let Multi {
            held: tickets,
            gathered,
            actions,
            client,
            ..
        } = held.multi;
        let seen = seen_since(client, &gathered, &mut held.contexts, site.store.shard);
        let writes = if held.wrote {
            // After a flush or a swap, the entry here may differ from what the owner has after the
            // same action: then every key is sent.
            unload(&mut held.scratch, gathered, !actions.is_empty(), site.now)
        } else {
            discard(&mut held.scratch, &gathered, site.now)
        };
        self.keep(held.scratch);
        let mut replies = Box::<Batch>::default();
        if let Some((header, reply)) = reply {
            replies.push_reply(*header, reply);
        }
        Ran {
            held: tickets,
            writes,
            actions,
            table: None,
            client,
            seen,
            origin: site.store.id,
            replies,
        }
    }

    /// Takes back an empty shard.
    pub(super) fn keep(&mut self, shard: Box<Shard>) {
        self.spare = Some(shard);
    }

    /// An empty shard to execute commands on, with the settings of `like`.
    pub(super) fn spare_shard(&mut self, like: &Shard) -> Box<Shard> {
        let (spare, seed) = (self.spare.take(), self.hash_seed);
        let mut shard = spare.unwrap_or_else(|| Box::new(Shard::new(seed)));
        shard.set_policy(like.policy());
        shard.set_tuning(*like.tuning());
        shard
    }
}
