//! A worker's counters, for readers outside the protocol (metrics, health).
//!
//! The reader starts a round; each worker notices at its next tick, between two commands, and puts
//! a copy of its counters on the board. Nothing is copied unless a round was started, and no
//! request waits for it.

use super::persistence::PersistenceInfo;
use super::shared::Counters;
use crate::cluster::figures as peers;
use rufous_base::WorkerId;
use rufous_base::limits::DATABASES;
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
    pub(super) shard: ShardCounters,
    pub(super) evictions: evict::Counters,
}

impl Base {
    pub(super) fn of(kernel: &Worker<DataCommands>) -> Self {
        Self {
            shard: kernel.shard.counters(),
            evictions: kernel.evictions(),
        }
    }
}
