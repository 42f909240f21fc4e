//! Commands on keys of several workers: gather, run, scatter.
//!
//! The worker of the client's connection coordinates. It visits the workers concerned in ascending
//! order; each holds the command's keys (other commands on them wait) and replies with their
//! entries. Then the command is executed once, on a scratch shard with just these entries, and its
//! changes are sent to the owners, which release the keys. So every command that can be executed on
//! one shard is atomic over many, without code of its own. A transaction is several commands on one
//! gathering (see `worker::spanning`).
//!
//! Invariants:
//! 1. Workers are visited in ascending order and each once: a command waits only for commands that
//!    wait, if at all, at a later worker, so that there is no cycle.
//! 2. Between the first hold and the last no entry changes; every entry that was read is still the
//!    owner's when the command is executed.
//! 3. A worker releases its keys only after it has applied the command's writes.
//! 4. Where there is a log and several workers have writes, each logs its part as a piece and
//!    releases its keys only when all pieces are committed; it logs that first. So no effect that
//!    depends on the command is logged anywhere before all pieces of the command are.
//!
//! Linear transactions will replace this module [Warp §2.2].

use crate::batch::Batch;
use crate::durable::TxnId;
use crate::keyspace::Keyspaces;
use crate::lock::{KeyName, Scope, Ticket};
use crate::shard::{Entry, WatchId};
use crate::worker::{CutOf, Delay, ExecPlan, Findings, Gap, WaiterId};
use rufous_base::WorkerId;
use rufous_lattice as lattice;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A command's action on whole databases rather than on keys.
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

/// What a worker does after it has applied its part of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Releases the keys; no worker waits for a report.
    LetGo,
    /// Releases the keys, and reports to the coordinator when its part is committed.
    Tell { multi: u64 },
    /// Reports to the coordinator, and holds the keys until it says that all parts are committed.
    Hold { multi: u64, piece: PieceOf },
}

/// The identity of a command over several workers, as logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PieceOf {
    pub txn: TxnId,
    /// All workers that log a piece.
    pub participants: Vec<u16>,
}

/// An executed command whose writes are not yet committed everywhere.
#[derive(Debug)]
pub struct Committing {
    pub replies: Box<Batch>,
    /// The worker that sent the request.
    pub origin: WorkerId,
    /// Workers that have not yet reported their commit.
    pub missing: usize,
    pub txn: Option<TxnId>,
    /// Workers that hold their keys until they are released.
    pub held: Vec<(WorkerId, Ticket)>,
}

/// A worker to visit, with its part of the command.
#[derive(Debug)]
pub struct Visit {
    pub worker: WorkerId,
    pub scope: Scope,
    /// For commands that hold more than they gather; others gather all keys that they hold.
    pub part: Option<Box<Part>>,
}

/// One worker's part of a transaction, or of a command that holds everything.
#[derive(Debug, Default)]
pub struct Part {
    /// The keys that its commands name.
    pub keys: Vec<KeyName>,
    /// The keys that its connection watches.
    pub watched: Vec<KeyName>,
    /// The reply also says whether a key that this watcher watches was touched.
    pub watcher: Option<WatchId>,
    /// This watcher watches the keys of the commands from now on.
    pub records: Option<WatchId>,
    /// The reply also says what this table would do to the existing keys.
    pub table: Option<Arc<Keyspaces>>,
}

/// A command in progress, at its coordinator.
#[derive(Debug)]
pub struct Multi {
    /// The request itself, alone in its batch; empty for a transaction.
    pub batch: Box<Batch>,
    /// The table of keyspaces by which its keys' owners were found.
    pub mark: u16,
    /// For a transaction: its keys may have other owners by the time that they are held.
    pub plan: Option<Box<ExecPlan>>,
    /// The embedder's number of a transaction; the embedder executes it.
    pub exec: Option<u64>,
    /// The client; see [`crate::batch::Header::client`].
    pub client: u64,
    /// It is the request of a client that waits for keys of this worker.
    pub waiter: Option<WaiterId>,
    /// It counts as an access to its keys.
    pub touch: bool,
    /// A watched key was touched.
    pub dirty: bool,
    /// A slot of its keys that this node does not serve, if there is one.
    pub unserved: Option<Gap>,
    /// One of which it may not execute reads either.
    pub unread: Option<Gap>,
    /// It has waited for its slots, and begun again.
    pub delay: Option<Delay>,
    /// What its table would do to the existing keys.
    pub findings: Findings,
    /// All replicas are equal, and no messages between them are in transit.
    pub drained: bool,
    /// The table of keyspaces that it installs on all workers.
    pub table: Option<Arc<Keyspaces>>,
    /// Workers yet to visit, the next one last.
    to_visit: Vec<Visit>,
    /// Workers that hold keys for it.
    pub held: Vec<(WorkerId, Ticket)>,
    pub gathered: Vec<Gathered>,
    /// Its actions on whole databases, in order, before its writes.
    pub actions: Vec<NodeAction>,
    /// Its keys may refer to others that it reads.
    pub open: Option<Open>,
    /// Owners of such keys that have not answered yet.
    pub awaited: usize,
}

/// The progress of a command that looks for the keys that it reads (see `worker::spanning`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// How often it has released its keys to hold more.
    pub round: u8,
    /// It holds everything.
    pub whole: bool,
}

/// After this many rounds a command holds everything instead of more keys.
const ROUNDS: u8 = 2;

/// A key of the command with its entry before the command ran.
#[derive(Debug)]
pub struct Gathered {
    pub owner: WorkerId,
    pub key: KeyName,
    pub entry: Option<Entry>,
    /// What the client has seen of the key, where that matters.
    pub context: Option<lattice::Seen>,
}

/// What the client of a command has seen of keys after the command.
pub type Seen = Vec<(KeyName, lattice::Seen)>;

/// A key and its change.
pub type KeyWrite = (KeyName, Change);

/// The change of a key by a command.
#[derive(Debug)]
pub enum Change {
    /// Its new contents, which replace the old.
    Whole(Option<Entry>),
    /// Encoded effects on its contents, each on this key alone.
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
            unserved: None,
            unread: None,
            delay: None,
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

    /// A command whose keys may refer to others, with those known so far.
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

    /// A transaction, by the parts of the workers concerned. `whole`: it holds everything of each
    /// of them.
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
