//! Commands on keys of several workers: gather, run, scatter.
//!
//! The worker of the client's connection coordinates. It visits the workers
//! concerned in ascending order; each holds the command's keys (everybody else
//! who wants them waits) and answers with what they contain. Then the command
//! runs once, on a scratch shard with just these entries, and what it changed
//! goes back to the owners, who let go of the keys. So every command that can
//! run on one shard is atomic over many, without code of its own. A transaction
//! is several commands on one gathering (see `worker::exec`).
//!
//! Invariants:
//! 1. Workers are visited in ascending order and each once: whoever waits,
//!    waits for somebody further on, so that there is no cycle.
//! 2. Between the first hold and the last nothing is changed; every entry read
//!    is still the owner's when the command runs.
//! 3. A worker lets go only with the command's writes applied.
//! 4. Where there is a log and several workers have writes, each logs its part
//!    as a piece and lets go only when all pieces are committed; who lets go
//!    logs that first. So nothing that follows from the command is logged
//!    anywhere before all of the command is.
//!
//! Linear transactions take this module's place [Warp §2.2].

use crate::batch::Batch;
use crate::durable::TxnId;
use crate::keyspace::Keyspaces;
use crate::lock::{KeyName, Scope, Ticket};
use crate::shard::{Entry, WatchId};
use crate::wait::WaiterId;
use crate::worker::{CutOf, ExecPlan, Findings};
use rufous_base::WorkerId;
use rufous_lattice as lattice;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a command does to whole databases rather than to keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeAction {
    FlushAll,
    FlushDb(u8),
    SwapDb(u8, u8),
    /// A new generation of logs begins.
    Cut {
        generation: u64,
        cut: CutOf,
    },
}

/// What is to follow when a worker has applied its part of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Let go; nobody waits.
    LetGo,
    /// Let go, and tell the coordinator when it is committed.
    Tell { multi: u64 },
    /// Tell the coordinator, and hold on until it says that all of them are.
    Hold { multi: u64, piece: PieceOf },
}

/// A command over several workers, as their logs name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PieceOf {
    pub txn: TxnId,
    /// Everybody who logs a piece.
    pub participants: Vec<u16>,
}

/// A command that has run, whose writes are not yet committed everywhere.
#[derive(Debug)]
pub struct Committing {
    pub replies: Box<Batch>,
    /// Whose request it was.
    pub origin: WorkerId,
    /// Workers that have not told yet that they have committed.
    pub missing: usize,
    pub txn: Option<TxnId>,
    /// Who holds on until told otherwise.
    pub held: Vec<(WorkerId, Ticket)>,
}

/// A worker to be visited, and what it is to do.
#[derive(Debug)]
pub struct Visit {
    pub worker: WorkerId,
    pub scope: Scope,
    /// For those who hold more than they gather; others gather what they hold.
    pub part: Option<Box<Part>>,
}

/// One worker's part of a transaction, or of a command that holds everything.
#[derive(Debug, Default)]
pub struct Part {
    /// What its commands name.
    pub keys: Vec<KeyName>,
    /// What its connection watches.
    pub watched: Vec<KeyName>,
    /// Answer also whether a key that this one watches was touched.
    pub watcher: Option<WatchId>,
    /// Answer what this table would do to the keys that are there.
    pub table: Option<Arc<Keyspaces>>,
}

/// A command under way, at its coordinator.
#[derive(Debug)]
pub struct Multi {
    /// The request itself, alone in its batch; empty for a transaction.
    pub batch: Box<Batch>,
    /// Which table of keyspaces its keys' owners were found by.
    pub mark: u16,
    /// Of a transaction: its keys may be others' by the time that they are held.
    pub plan: Option<Box<ExecPlan>>,
    /// The embedder's number of a transaction, which it runs itself.
    pub exec: Option<u64>,
    /// Whose it is; see [`crate::batch::Header::client`].
    pub client: u64,
    /// It is the request of a client that waits for keys of this worker.
    pub waiter: Option<WaiterId>,
    /// It counts as an access to its keys.
    pub touch: bool,
    /// A watched key was touched.
    pub dirty: bool,
    /// Some keys are of slots that this node does not answer for.
    pub unserved: bool,
    /// What its table would do to the keys that are there.
    pub findings: Findings,
    /// All replicas are equal, and nothing is under way between them.
    pub drained: bool,
    /// The table of keyspaces that it makes everybody's.
    pub table: Option<Arc<Keyspaces>>,
    /// Workers still to be visited, the next one last.
    to_visit: Vec<Visit>,
    /// Who holds keys for it.
    pub held: Vec<(WorkerId, Ticket)>,
    pub gathered: Vec<Gathered>,
    /// What it does to whole databases, in order, before its writes.
    pub actions: Vec<NodeAction>,
    /// Its keys may tell of others that it reads.
    pub open: Option<Open>,
    /// Owners of such that were asked and have not answered.
    pub awaited: usize,
}

/// How far a command has come that looks for the keys it reads (see
/// `worker::open`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// How often it had to let go.
    pub round: u8,
    /// It holds everything.
    pub whole: bool,
}

/// So often a command lets go to hold more keys; then it holds everything.
const ROUNDS: u8 = 2;

/// A key of the command with its entry before the command ran.
#[derive(Debug)]
pub struct Gathered {
    pub owner: WorkerId,
    pub key: KeyName,
    pub entry: Option<Entry>,
    /// What the client has seen of it, where that matters.
    pub context: Option<lattice::Seen>,
}

/// What the client of a command has seen of keys once it has run.
pub type Seen = Vec<(KeyName, lattice::Seen)>;

/// A key and what becomes of it.
pub type KeyWrite = (KeyName, Change);

/// What a command did to a key.
#[derive(Debug)]
pub enum Change {
    /// What it contains from now on, whatever it had.
    Whole(Option<Entry>),
    /// Encoded effects on what it has, each on this key alone.
    Effects(Vec<u8>),
}

impl Multi {
    fn new(batch: Box<Batch>, to_visit: Vec<Visit>) -> Self {
        Self {
            touch: batch.requests.iter().all(|r| !r.header.no_touch),
            client: batch.requests.first().map_or(0, |r| r.header.client),
            batch,
            mark: 0,
            plan: None,
            exec: None,
            waiter: None,
            dirty: false,
            unserved: false,
            findings: Findings::default(),
            drained: false,
            table: None,
            to_visit,
            held: Vec::new(),
            gathered: Vec::new(),
            actions: Vec::new(),
            open: None,
            awaited: 0,
        }
    }

    /// A command whose keys may tell of others, with those known so far.
    pub fn on_open(
        batch: Box<Batch>,
        keys: Vec<(WorkerId, KeyName)>,
        round: u8,
        workers: usize,
    ) -> Self {
        let whole = round > ROUNDS;
        let open = Some(Open { round, whole });
        if !whole {
            return Self {
                open,
                ..Self::on_keys(batch, keys)
            };
        }
        let all = (0..workers).map(|w| (WorkerId(w as u16), Part::default()));
        let mut parts: BTreeMap<_, _> = all.collect();
        for (owner, key) in keys {
            parts.entry(owner).or_default().keys.push(key);
        }
        Self {
            open,
            ..Self::new(batch, Self::visits(parts, true))
        }
    }

    /// `keys` with their owners, in any order, repeats allowed.
    pub fn on_keys(batch: Box<Batch>, keys: Vec<(WorkerId, KeyName)>) -> Self {
        let mut by_worker = BTreeMap::<WorkerId, Vec<KeyName>>::new();
        for (owner, key) in keys {
            by_worker.entry(owner).or_default().push(key);
        }
        let visit = |(worker, keys)| Visit {
            worker,
            scope: Scope::keys(keys),
            part: None,
        };
        Self::new(batch, by_worker.into_iter().rev().map(visit).collect())
    }

    /// A command that concerns all data of all workers.
    pub fn on_node(batch: Box<Batch>, workers: usize, action: NodeAction) -> Self {
        let visit = |w| Visit {
            worker: WorkerId(w as u16),
            scope: Scope::All,
            part: None,
        };
        let mut multi = Self::new(batch, (0..workers).rev().map(visit).collect());
        multi.actions.push(action);
        multi
    }

    /// A change of the keyspaces, which concerns all data of all workers.
    pub fn on_keyspaces(batch: Box<Batch>, workers: usize, table: Arc<Keyspaces>) -> Self {
        let part = |w| {
            let table = Some(Arc::clone(&table));
            let part = Part {
                table,
                ..Part::default()
            };
            (WorkerId(w as u16), part)
        };
        let parts = (0..workers).map(part).collect();
        Self {
            table: Some(table),
            ..Self::new(batch, Self::visits(parts, true))
        }
    }

    /// A transaction, by the parts of the workers concerned. `whole`: it holds
    /// everything of each of them.
    pub fn on_exec(exec: u64, parts: BTreeMap<WorkerId, Part>, whole: bool, touch: bool) -> Self {
        Self {
            exec: Some(exec),
            touch,
            ..Self::new(Box::default(), Self::visits(parts, whole))
        }
    }

    fn visits(parts: BTreeMap<WorkerId, Part>, whole: bool) -> Vec<Visit> {
        let visit = |(worker, part): (WorkerId, Part)| Visit {
            worker,
            scope: match whole {
                true => Scope::All,
                false => Scope::keys(part.keys.iter().chain(&part.watched).cloned().collect()),
            },
            part: Some(Box::new(part)),
        };
        parts.into_iter().rev().map(visit).collect()
    }

    /// The next worker to visit; none once a watched key was found touched.
    pub fn next_visit(&mut self) -> Option<Visit> {
        if self.dirty {
            return None;
        }
        let visit = self.to_visit.pop();
        debug_assert!(
            visit
                .as_ref()
                .is_none_or(|v| self.held.iter().all(|h| h.0 < v.worker)),
            "workers are visited in ascending order"
        );
        visit
    }
}
