//! Checks all the time which nodes answer for slots: never two at once, and of each
//! chain only one ever.

use super::plan::{KEYS, Plan};
use super::world::{What, World};
use rufous_base::slot::{slot_of, worker_of_slot};
use rufous_cluster::figures::ForwardFigures as Figures;
use std::collections::BTreeMap;

/// How often it is looked.
const PERIOD_US: (u64, u64) = (2_000, 80_000);

/// See the module's description.
#[derive(Debug)]
pub(super) struct Watch {
    slots: Vec<u16>,
    /// Of each slot, and the epoch that its chain is of: the node that answered.
    heads: BTreeMap<(u16, u64), usize>,
    /// Of nodes that have ended.
    passed_on: Figures,
}

impl Watch {
    pub(super) fn new(plan: &Plan) -> Self {
        let keys = KEYS.iter().map(|key| slot_of(key.as_bytes()));
        let mut slots: Vec<u16> = keys.chain(plan.slots.iter().copied()).collect();
        slots.sort_unstable();
        slots.dedup();
        Self {
            slots,
            heads: BTreeMap::new(),
            passed_on: Figures::default(),
        }
    }
}

impl World {
    pub(super) fn on_watch(&mut self) {
        let (low, high) = PERIOD_US;
        let at = self.engine.now_us + self.chance.skewed(low, high);
        self.push(at, None, What::Watch);
        for slot in std::mem::take(&mut self.watch.slots) {
            self.look_at_slot(slot);
            self.watch.slots.push(slot);
        }
    }

    fn look_at_slot(&mut self, slot: u16) {
        let mut answers = Vec::new();
        for node in self.nodes.iter().filter(|node| node.is_up()) {
            let worker = worker_of_slot(slot, node.workers).index();
            let kernel = &node.seats[worker].front.kernel;
            let since = kernel.answers_since(slot, node.now(self.engine.now_us));
            answers.extend(since.map(|since| (node.index, since)));
        }
        if answers.len() > 1 {
            return self.fail(format!("slot {slot} is answered for by {answers:?}"));
        }
        for (node, since) in answers {
            let known = *self.watch.heads.entry((slot, since)).or_insert(node);
            if known != node {
                let who = format!("n{known}, and by n{node} later");
                return self.fail(format!(
                    "slot {slot} was answered for by {who}, in its chain of epoch {since}"
                ));
            }
        }
    }

    /// What its workers have passed on to others is not forgotten with a node.
    pub(super) fn note_passed_on(&mut self, node: usize) {
        for seat in &self.nodes[node].seats {
            if let Some(figures) = seat.front.peer_figures() {
                self.watch.passed_on.add(&figures.forward);
            }
        }
    }

    /// Reaches the probes of forwarded requests, by their outcomes.
    pub(super) fn look_at_passed_on(&mut self) {
        for node in 0..self.nodes.len() {
            self.note_passed_on(node);
        }
        let figures = self.watch.passed_on;
        for (probe, count) in [
            ("a request was passed on", figures.served),
            (
                "a request that was passed on was turned away",
                figures.not_here,
            ),
            ("a request was passed on once more", figures.retried),
        ] {
            if count > 0 {
                self.reach(probe);
            }
        }
    }
}
