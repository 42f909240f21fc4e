//! Slots that learners have completely, reported by the workers of tails to the control thread, and
//! by that to the node that plans the next epoch; and what this node's files have of slots of whose
//! chains no node acts.
//!
//! Reports are repeated as long as they hold: a report that is lost, or that reaches a node that is
//! no longer the leader, does no harm.

use rufous_mapping::NodeNo;
use rufous_mapping::planner::{self, Copy, Held, Report};
use rufous_wire::message::{HeldSlots, Learned, LearnedSlots};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Ranges in a report. Further ones are reported when these are done.
const MOST: usize = 8192;

/// See the module's description.
#[derive(Debug, Default)]
pub struct Reports {
    /// The last report of each worker of this node.
    own: Mutex<BTreeMap<u16, Learned>>,
    /// What each worker of this node has of slots of whose chains no node acts, and the epoch of the mapping by which
    /// it has them.
    held: Mutex<BTreeMap<u16, (u64, Vec<HeldSlots>)>>,
    /// What is true of all of the node's copies.
    about: Mutex<AboutCopies>,
    /// The last report of each other node.
    others: Mutex<BTreeMap<NodeNo, Learned>>,
}

/// What is true of all copies of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AboutCopies {
    /// The node's start.
    pub incarnation: u64,
    /// It has a log: copies that it does not have were lost.
    pub logs: bool,
    /// The operator accepts that writes are lost which no reported copy has.
    pub accepts: bool,
    /// The files may lack writes that were acknowledged.
    pub may_lack: bool,
    /// They have everything that the node has ever logged.
    pub keeps_all: bool,
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
            false => {
                let learned = Learned {
                    all,
                    ..Learned::default()
                };
                own.insert(worker, learned)
            }
        };
    }

    /// Records what a worker of this node has of slots of whose chains no node acts, in their order, by
    /// the mapping of an epoch. True if that is news.
    pub fn tell_held(
        &self,
        worker: u16,
        about: AboutCopies,
        (epoch, slots): (u64, &[(u16, Option<Copy>)]),
    ) -> bool {
        let mut all: Vec<HeldSlots> = Vec::new();
        for (slot, copy) in slots {
            let Copy { since, seq } = copy.unwrap_or(Copy { since: 0, seq: 0 });
            let (first, whole) = (u32::from(*slot), copy.is_some());
            match all.last_mut() {
                Some(last)
                    if (last.until, last.whole, last.since, last.seq)
                        == (first, whole, since, seq) =>
                {
                    last.until += 1;
                }
                _ => all.push(HeldSlots {
                    first,
                    until: first + 1,
                    whole,
                    since,
                    seq,
                }),
            }
        }
        *lock(&self.about) = about;
        let mut held = lock(&self.held);
        if all.is_empty() {
            return held.remove(&worker).is_some();
        }
        let told = (epoch, all);
        let is_news = held.get(&worker) != Some(&told);
        held.insert(worker, told);
        is_news
    }

    /// The reports of all workers of this node, to be sent to another node.
    pub fn own(&self) -> Learned {
        let own = lock(&self.own);
        let all = own.values().flat_map(|learned| learned.all.iter().cloned());
        let about = *lock(&self.about);
        let held = lock(&self.held);
        let epochs = held.values().map(|(epoch, _)| *epoch);
        Learned {
            all: all.take(MOST).collect(),
            // A worker may know a later mapping than another one.
            epoch: epochs.min().unwrap_or(0),
            // Workers have slots in their own order.
            held: held
                .values()
                .flat_map(|(_, slots)| slots)
                .cloned()
                .collect(),
            incarnation: about.incarnation,
            logs: about.logs,
            accepts: about.accepts,
            may_lack: about.may_lack,
            keeps_all: about.keeps_all,
        }
    }

    /// Records a report of another node. True if it has other copies than before.
    pub fn hear(&self, node: NodeNo, learned: Learned) -> bool {
        let held = learned.held.clone();
        let before = lock(&self.others).insert(node, learned);
        before.map_or_else(Vec::new, |before| before.held) != held
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

    /// What nodes have of slots of whose chains no node acts; `own` is the number of this one.
    pub fn held(&self, own: Option<NodeNo>) -> Held {
        let mut held = Held::default();
        for (node, learned) in &*lock(&self.others) {
            held.hear(*node, report_of(learned));
        }
        if let Some(own) = own {
            held.hear(own, report_of(&self.own()));
        }
        held
    }

    /// Reports of other nodes are valid only for the epoch that they name.
    pub fn forget_others(&self) {
        lock(&self.others).clear();
    }
}

/// Messages are validated on receipt.
fn report_of(learned: &Learned) -> Report {
    let mut report = Report::new(learned.incarnation, learned.logs, learned.accepts);
    report.epoch = (learned.epoch > 0).then_some(learned.epoch);
    report.may_lack = learned.may_lack;
    report.keeps_all = learned.keeps_all;
    for slots in &learned.held {
        let copy = Copy {
            since: slots.since,
            seq: slots.seq,
        };
        let range = slots.first as u16..slots.until as u16;
        report.add(range, slots.whole.then_some(copy));
    }
    report
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

    #[test]
    fn copies_are_reported_with_the_start_that_has_them() {
        let reports = Reports::default();
        let about = AboutCopies {
            incarnation: 7,
            logs: true,
            accepts: false,
            may_lack: true,
            keeps_all: false,
        };
        let copy = |seq| Some(Copy { since: 3, seq });
        let three = [(1, copy(5)), (2, copy(5)), (3, None)];
        reports.tell_held(0, about, (12, &three));
        assert!(reports.tell_held(1, about, (11, &[(9000, copy(0))])));
        let own = reports.own();
        assert_eq!((own.held.len(), own.incarnation, own.epoch), (3, 7, 11));
        assert!(reports.hear(NodeNo(1), own.clone()));
        assert!(!reports.hear(NodeNo(1), own));
        assert!(reports.tell_held(1, about, (12, &[(9000, copy(0))])));
        reports.hear(NodeNo(1), reports.own());
        assert!(reports.tell_held(0, about, (12, &[])));
        assert!(!reports.tell_held(0, about, (13, &[])));
        let held = reports.held(Some(NodeNo(2)));
        let of = |node| held.of(NodeNo(node)).expect("a report");
        assert_eq!(of(1).slots.get(&1), Some(&(3, copy(5))));
        assert_eq!(of(1).slots.get(&3), Some(&(4, None)));
        assert_eq!((of(1).incarnation, of(1).logs), (7, true));
        assert_eq!((of(1).epoch, of(2).epoch), (Some(12), Some(12)));
        assert_eq!(of(2).slots.len(), 1);
        assert_eq!(reports.held(None).of(NodeNo(2)), None);
    }
}
