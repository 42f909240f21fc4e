//! A worker's counters, for readers outside the protocol (metrics, health).
//!
//! The reader starts a round; each worker notices at its next tick, between two commands, and puts
//! a copy of its counters on the board. Nothing is copied unless a round was started, and no
//! request waits for it.

use super::connection::{Connection, Suspended};
use super::local::Local;
use super::persistence::PersistenceInfo;
use super::shared::Counters;
use crate::cluster::figures as peers;
use crate::cluster::jobs::is_job;
use crate::command::server::info::figures::{Figures as Info, Keyspace};
use crate::command::server::memory::Usage;
use rufous_base::limits::DATABASES;
use rufous_base::{Now, WorkerId};
use rufous_command::DataCommands;
use rufous_kernel::replicate::replicas;
use rufous_kernel::shard::{Counters as ShardCounters, Memory};
use rufous_kernel::{Worker, evict};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The counters of one worker at one time.
#[derive(Clone, Debug)]
pub struct WorkerFigures {
    /// Commands that were called or refused.
    pub commands: Vec<CommandFigures>,
    pub counters: Counters,
    pub shard: ShardCounters,
    pub evictions: evict::Counters,
    pub memory: Memory,
    pub keys: [usize; DATABASES],
    /// The number of keys with an expiry time.
    pub expiring: [usize; DATABASES],
    pub clients: usize,
    /// Clients that wait for data.
    pub blocked: usize,
    /// Connections with an open `BEGIN` transaction.
    pub open_transactions: usize,
    pub persistence: PersistenceInfo,
    pub replication: replicas::Figures,
    /// Counters of sessions with other nodes, if the node is in a cluster.
    pub peers: Option<peers::Figures>,
}

#[derive(Clone, Copy, Debug)]
pub struct CommandFigures {
    pub name: &'static str,
    pub calls: u64,
    pub usec: u64,
    pub rejected: u64,
    pub failed: u64,
}

/// The board: where workers publish their counters.
#[derive(Debug)]
pub struct Board {
    round: AtomicU64,
    places: Vec<Place>,
}

#[derive(Debug, Default)]
struct Place {
    /// The round that the counters belong to; 0: none.
    round: AtomicU64,
    figures: Mutex<Option<Arc<WorkerFigures>>>,
}

impl Board {
    pub fn new(workers: usize) -> Self {
        Self {
            round: AtomicU64::new(0),
            places: (0..workers).map(|_| Place::default()).collect(),
        }
    }

    /// Requests counters from every worker, and returns the number of the round.
    pub fn ask(&self) -> u64 {
        self.round.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether a worker has answered this round, or a later one.
    pub fn has_answered(&self, worker: usize, round: u64) -> bool {
        self.places
            .get(worker)
            .is_some_and(|place| place.round.load(Ordering::Acquire) >= round)
    }

    pub fn all_have_answered(&self, round: u64) -> bool {
        (0..self.places.len()).all(|worker| self.has_answered(worker, round))
    }

    /// Publishes counters if a round was started.
    pub(super) fn answer(&self, worker: WorkerId, figures: impl FnOnce() -> WorkerFigures) {
        let Some(place) = self.places.get(worker.index()) else {
            return;
        };
        let round = self.round.load(Ordering::Relaxed);
        if place.round.load(Ordering::Relaxed) == round {
            return;
        }
        let figures = Arc::new(figures());
        *place.figures.lock().unwrap_or_else(PoisonError::into_inner) = Some(figures);
        place.round.store(round, Ordering::Release);
    }

    /// The last counters of every worker; `None` if it has not published any.
    pub fn figures(&self) -> Vec<Option<Arc<WorkerFigures>>> {
        let read = |place: &Place| {
            place
                .figures
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone()
        };
        self.places.iter().map(read).collect()
    }
}

/// The kernel's counters when statistics were last reset.
#[derive(Debug, Default)]
pub(super) struct Base {
    shard: ShardCounters,
    evictions: evict::Counters,
}

impl Base {
    pub(super) fn of(kernel: &Worker<DataCommands>) -> Self {
        Self {
            shard: kernel.shard.counters(),
            evictions: kernel.evictions(),
        }
    }
}

impl Local<'_> {
    /// What `INFO` shows of the worker.
    pub(crate) fn info(&self, now: Now) -> Info {
        let front = &*self.front;
        front.shared.publish_memory(&front.kernel);
        let here = front.kernel.waiting_clients().in_time();
        let here = here.filter(|conn| !is_job(*conn)).count();
        let in_time = here + front.peers.forwarding.in_time();
        let shard = &front.kernel.shard;
        let counted = shard.counters();
        Info {
            clients: front.connections.clients().count(),
            paused: front
                .connections
                .clients()
                .filter(|c| c.suspended == Some(Suspended::Paused))
                .count(),
            blocked: front.connections.blocked(),
            in_time,
            awaited: shard.observers().awaited_keys(),
            watching: front
                .connections
                .clients()
                .filter(|c| !c.transaction.watched.is_empty())
                .count(),
            watched: front
                .connections
                .clients()
                .map(|c| c.transaction.watched.len())
                .sum(),
            open_transactions: front.connections.begun(),
            longest_input: front
                .connections
                .clients()
                .map(|c| c.held.len())
                .max()
                .unwrap_or(0),
            longest_output: front
                .connections
                .clients()
                .map(|c| c.replies.late_bytes())
                .max()
                .unwrap_or(0),
            memory: self.usage(),
            counters: front.counters.clone(),
            commands: self.command_stats(),
            per_second: front.cron.per_second(),
            expired: counted.expired - front.base.shard.expired,
            evicted: front.kernel.evictions().evicted - front.base.evictions.evicted,
            changes: counted.changes,
            hits: counted.hits - front.base.shard.hits,
            misses: counted.misses - front.base.shard.misses,
            keyspace: std::array::from_fn(|db| Keyspace {
                keys: shard.listed_len(db),
                expires: shard.listed_expiring_len(db),
                avg_ttl: shard.avg_ttl(db, now),
            }),
            persistence: front.durability.info(&front.kernel),
            replication: front.kernel.replication_figures(),
            grave_bytes: shard.memory().grave_bytes,
            peers: self.peer_figures(),
        }
    }

    /// The memory that the worker uses.
    pub(crate) fn usage(&self) -> Usage {
        let front = &*self.front;
        let per_client =
            |c: &Connection| size_of::<Connection>() + c.held.capacity() + c.replies.capacity();
        Usage {
            data: front.kernel.memory(),
            charged: front.kernel.shard.charged(),
            clients: front.connections().map(per_client).sum(),
        }
    }

    /// All counters of the worker.
    pub(super) fn figures(&self) -> WorkerFigures {
        let front = &*self.front;
        let shard = &front.kernel.shard;
        let commands =
            front
                .table
                .specs()
                .zip(front.kernel.stats())
                .filter_map(|((_, spec), stats)| {
                    let noted = stats.calls + stats.rejected + stats.failed > 0;
                    noted.then(|| CommandFigures {
                        name: spec.name,
                        calls: stats.calls,
                        usec: stats.usec(),
                        rejected: stats.rejected,
                        failed: stats.failed,
                    })
                });
        WorkerFigures {
            commands: commands.collect(),
            counters: front.counters.clone(),
            shard: shard.counters(),
            evictions: front.kernel.evictions(),
            memory: front.kernel.memory(),
            keys: std::array::from_fn(|db| shard.listed_len(db)),
            expiring: std::array::from_fn(|db| shard.listed_expiring_len(db)),
            clients: front.connections.clients().count(),
            blocked: front.connections.blocked(),
            open_transactions: front.connections.begun(),
            persistence: front.durability.info(&front.kernel),
            replication: front.kernel.replication_figures(),
            peers: front.peer_figures(),
        }
    }
}
