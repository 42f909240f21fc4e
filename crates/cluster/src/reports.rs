//! Slots that learners have completely: reported by the workers of tails to the control thread, and
//! by that to the node that plans the next epoch.
//!
//! Reports are repeated as long as they hold: a report that is lost, or that reaches a node that is
//! no longer the leader, does no harm.

use rufous_mapping::NodeNo;
use rufous_mapping::planner;
use rufous_wire::message::{Learned, LearnedSlots};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Ranges in a report. Further ones are reported when these are done.
const MOST: usize = 8192;

/// See the module's description.
#[derive(Debug, Default)]
pub struct Reports {
    /// The last report of each worker of this node.
    own: Mutex<BTreeMap<u16, Learned>>,
    /// The last report of each other node.
    others: Mutex<BTreeMap<NodeNo, Learned>>,
}

/// No holder of the lock panics, and the data would be valid even then.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Reports {
    /// Records what a worker of this node reports: slot, learner, the epoch of the chain.
    pub fn tell(&self, worker: u16, slots: &[(u16, NodeNo, u64)]) {
        let mut all: Vec<LearnedSlots> = Vec::new();
        for (slot, learner, since) in slots {
            let (slot, learner) = (u32::from(*slot), u32::from(learner.0));
            match all.last_mut() {
                Some(last) if (last.until, last.learner, last.since) == (slot, learner, *since) => {
                    last.until += 1;
                }
                _ => all.push(LearnedSlots {
                    first: slot,
                    until: slot + 1,
                    learner,
                    since: *since,
                }),
            }
        }
        let mut own = lock(&self.own);
        match all.is_empty() {
            true => own.remove(&worker),
            false => own.insert(worker, Learned { all }),
        };
    }

    /// The reports of all workers of this node, to be sent to another node.
    pub fn own(&self) -> Learned {
        let own = lock(&self.own);
        let all = own.values().flat_map(|learned| learned.all.iter().cloned());
        Learned {
            all: all.take(MOST).collect(),
        }
    }

    pub fn hear(&self, node: NodeNo, learned: Learned) {
        lock(&self.others).insert(node, learned);
    }

    /// All known reports, for the planner.
    pub fn known(&self) -> planner::Learned {
        let (own, others) = (self.own(), lock(&self.others));
        let mut known = planner::Learned::default();
        for slots in others
            .values()
            .chain([&own])
            .flat_map(|learned| &learned.all)
        {
            // Messages are validated on receipt.
            let (first, until) = (slots.first as u16, slots.until as u16);
            known.add(first..until, NodeNo(slots.learner as u16), slots.since);
        }
        known
    }

    /// Reports of other nodes are valid only for the epoch that they name.
    pub fn forget_others(&self) {
        lock(&self.others).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_a_report_are_ranges_where_they_can_be() {
        let reports = Reports::default();
        reports.tell(
            0,
            &[(1, NodeNo(5), 7), (2, NodeNo(5), 7), (3, NodeNo(5), 8)],
        );
        reports.tell(1, &[(9000, NodeNo(4), 7)]);
        let own = reports.own();
        assert_eq!(own.all.len(), 3);
        reports.hear(NodeNo(1), own);
        reports.tell(0, &[]);
        reports.tell(1, &[]);
        assert!(reports.own().all.is_empty());
        let known = reports.known();
        assert!(known.has(&(1..3), NodeNo(5), 7));
        assert!(!known.has(&(1..4), NodeNo(5), 7));
        assert!(known.has(&(9000..9001), NodeNo(4), 7));
        reports.forget_others();
        assert_eq!(reports.known(), planner::Learned::default());
    }
}
