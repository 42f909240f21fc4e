//! What workers report of this node's health, for its announcement: the nodes that they hear, and
//! logs that cannot be written.

use rufous_mapping::NodeNo;
use rufous_mapping::planner::Health;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// See the module's description.
#[derive(Debug, Default)]
pub struct Board(Mutex<Reported>);

#[derive(Debug, Default)]
struct Reported {
    /// By worker.
    hears: BTreeMap<u16, BTreeSet<NodeNo>>,
    ails: BTreeMap<u16, String>,
}

impl Board {
    /// The nodes that a worker has heard lately on its sessions.
    pub(crate) fn hears(&self, worker: u16, nodes: BTreeSet<NodeNo>) {
        self.lock().hears.insert(worker, nodes);
    }

    /// Why a worker cannot take writes, if it cannot.
    pub fn ails(&self, worker: u16, why: Option<String>) {
        let mut reported = self.lock();
        match why {
            Some(why) => reported.ails.insert(worker, why),
            None => reported.ails.remove(&worker),
        };
    }

    /// What all workers have reported last.
    pub fn known(&self) -> Health {
        let reported = self.lock();
        let ails = reported.ails.iter().next();
        let hears = reported.hears.values().flatten();
        Health {
            ails: ails.map(|(worker, why)| format!("worker {worker}: {why}")),
            hears: Some(hears.copied().collect()),
        }
    }

    /// No holder of the lock panics, and the data would be valid even then.
    fn lock(&self) -> MutexGuard<'_, Reported> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
