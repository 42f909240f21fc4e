//! What an operator does to members and to the coordinator: forgets a node that is gone for good, and restores the
//! coordinator to an earlier state, until the last one is put back. Few seeds have either.

use super::coordinator::{Coordinator, LEADER, control};
use super::node::Power;
use super::plan::Plan;
use super::world::{What, World};
use crate::node::plan::Mode;
use rufous_cluster::control::Kept;
use rufous_mapping::{Mapping, NodeId};
use rufous_wire::mapping::encode;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// States of the coordinator that there are backups of.
const BACKUPS: usize = 12;

/// When the operator looks which nodes have not recognised the last mapping.
const RECOGNISED_US: u64 = 10_000_000;

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Operator {
    /// Members that are to be forgotten.
    pub(super) forgets: BTreeSet<NodeId>,
    has_forgotten: bool,
    /// A member that is gone, and from when on it is to be forgotten.
    gone: Option<(NodeId, u64)>,
    /// Earlier mappings, the last one at the end.
    backups: VecDeque<Arc<Mapping>>,
    /// What the coordinator has in place of the last mapping.
    restored: Option<(Arc<Mapping>, Vec<u8>)>,
    until_us: u64,
}

impl Plan {
    /// Whether a node does not come back, and is forgotten: not in seeds that are kept from before.
    pub(super) fn forgets(&self) -> bool {
        self.seed % 16 == 1 && self.mode != Mode::Off && self.copies > 1
    }

    /// After how long members that are away leave for good: not in those either.
    pub(super) fn absence_ms(&self) -> Option<u64> {
        (matches!(self.seed % 64, 36 | 62) && self.copies > 1).then_some(500)
    }

    /// Whether the coordinator is restored to earlier states: not in those either.
    pub(super) fn restores(&self) -> bool {
        self.seed % 16 == 10 && self.mode != Mode::Off
    }
}

impl Operator {
    /// What the coordinator has, if it was restored.
    pub(super) fn restored(&self) -> Option<&(Arc<Mapping>, Vec<u8>)> {
        self.restored.as_ref()
    }

    /// Whether nothing is left to be done.
    pub(super) fn is_done(&self) -> bool {
        self.forgets.is_empty() && self.gone.is_none() && self.restored.is_none()
    }

    /// Whether the member is gone, and not forgotten yet.
    pub(super) fn waits_for(&self, id: NodeId) -> bool {
        self.forgets.contains(&id) || self.gone.is_some_and(|(gone, _)| gone == id)
    }

    /// The coordinator has another mapping now, in place of this one.
    pub(super) fn on_taken(&mut self, before: Arc<Mapping>) {
        self.restored = None;
        self.backups.push_back(before);
        if self.backups.len() > BACKUPS {
            self.backups.pop_front();
        }
    }
}

impl Coordinator {
    fn restore(&mut self, copies: usize, until_us: u64) -> Option<u64> {
        let backups = &self.operator.backups;
        // What its leader does not know yet cannot be missed by it.
        if backups.len() < 2 || self.leader_epoch() != self.epoch() {
            return None;
        }
        let at = self.random.index(backups.len());
        let backup = Arc::clone(&backups[at]);
        let (epoch, bytes) = (backup.epoch, encode(&backup));
        self.operator.restored = (epoch > 0).then_some((backup, bytes));
        self.operator.until_us = until_us;
        // Another process leads, which knows what this one has kept.
        let mapping = self.leader.mapping().cloned();
        let kept = Kept {
            mapping,
            is_behind: false,
        };
        self.leader = control(LEADER, copies, (0, None), kept);
        (epoch > 0).then_some(epoch)
    }
}

impl World {
    pub(super) fn operate(&mut self) {
        let now = self.engine.now_us;
        if self.plan.forgets()
            && !self.coordinator.operator.has_forgotten
            && self.chance.chance(0.01)
        {
            self.lose_for_good();
        }
        if !self.plan.restores() {
            return;
        }
        if self.coordinator.operator.restored.is_some() {
            if now >= self.coordinator.operator.until_us {
                self.put_back();
            }
        } else if self.chance.chance(0.02) {
            let until = now + self.chance.skewed(200_000, 5_000_000);
            if let Some(epoch) = self.coordinator.restore(self.plan.copies, until) {
                self.reach("the coordinator was restored to an earlier state");
                let last = self.coordinator.epoch();
                let what = format_args!("is restored to epoch {epoch}, of {last}, until {until}");
                self.note("coord", what);
                if self.chance.chance(0.7) {
                    self.end_all();
                }
            }
        }
    }

    /// The coordinator has the last mapping again.
    pub(super) fn put_back(&mut self) {
        if self.coordinator.operator.restored.take().is_some() {
            self.coordinator.operator.until_us = self.engine.now_us;
            self.note("coord", format_args!("has the last mapping again"));
        }
    }

    /// A node that did not know the last mapping does not recognise it, and starts again without the note of that
    /// (record 49).
    pub(super) fn start_again_behind(&mut self) {
        let operator = &self.coordinator.operator;
        let put_back_us = operator.until_us + RECOGNISED_US;
        if operator.restored.is_some() || self.engine.now_us < put_back_us {
            return;
        }
        for node in 0..self.nodes.len() {
            let found = &mut self.nodes[node];
            if found.power == Power::Up && found.kept.is_behind {
                found.kept.is_behind = false;
                self.end(node, false);
                self.push(self.engine.now_us + 1, None, What::Start(node));
            }
        }
    }

    /// All nodes end, and one of them never starts again: chains of which it was a member wait for its copies until it
    /// is forgotten.
    fn lose_for_good(&mut self) {
        let is_there = |node: &&super::node::Node| node.power == Power::Up && !node.drains;
        let there: Vec<usize> = self
            .nodes
            .iter()
            .filter(is_there)
            .map(|node| node.index)
            .collect();
        let gone = *self.chance.pick(&[0, 1, 2, 3, 4]);
        let Some(&gone) = there.get(gone).filter(|_| there.len() > self.plan.copies) else {
            return;
        };
        self.coordinator.operator.has_forgotten = true;
        self.end_all();
        self.note("world", format_args!("n{gone} is gone for good"));
        self.nodes[gone].power = Power::Gone;
        let id = self.nodes[gone].id;
        // The others have found by then that they wait for it.
        let due_us = self.engine.now_us + self.chance.between(4_000_000, 7_000_000);
        self.coordinator.operator.gone = Some((id, due_us));
    }

    pub(super) fn forget_gone(&mut self) {
        let now = self.engine.now_us;
        let operator = &mut self.coordinator.operator;
        let due = operator.gone.take_if(|(_, due_us)| *due_us <= now);
        operator.forgets.extend(due.map(|(id, _)| id));
    }

    /// The leader has done what the operator wanted, or has said why not.
    pub(super) fn on_forgotten(&mut self, id: NodeId, kept: Option<String>) {
        let node = self.nodes.iter().position(|node| node.id == id);
        let Some(node) = node else { return };
        let is_back = self.nodes[node].is_up();
        match kept {
            None => self.reach("a member that was gone was forgotten"),
            Some(_) if is_back => {}
            // It has the only copies of something.
            Some(why) if why.contains("start it again") => {
                self.nodes[node].power = Power::Down;
                self.push(self.engine.now_us + 1, None, What::Start(node));
            }
            // The coordinator takes it for alive for a while.
            Some(_) => return,
        }
        self.coordinator.operator.forgets.remove(&id);
    }
}
