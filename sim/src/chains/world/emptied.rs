//! All nodes stop, and no copy of some slots is left: their nodes' folders are empty, or have a part of
//! a copy. The nodes start without the operator's consent to a loss, stop, and start with it.

use super::super::SLOTS;
use super::super::node::{Lists, Node};
use super::World;
use rufous_mapping::NodeNo;
use std::collections::BTreeMap;

/// By then all nodes have reported what they have.
const WAIT_US: u64 = 4_000_000;
/// By then all slots are served again, with all their copies.
const REPAIR_US: u64 = 15_000_000;
/// How long clients work afterwards.
const WORK_US: u64 = 2_000_000;

impl World {
    /// In one of two plans, after all else.
    pub(super) fn lose_all_copies(&mut self) -> Result<(), String> {
        self.moves = None;
        // A cluster of one node does not wait for its operator.
        if self.coordinator.mapping.members.len() == 1 || self.folders.below(2) == 0 {
            return Ok(());
        }
        let slot = SLOTS[self.folders.below(SLOTS.len() as u64) as usize];
        let emptied = self.coordinator.mapping.chains.of(slot).members.to_vec();
        let lost = |world: &Self| {
            let members = |slot| world.coordinator.mapping.chains.of(slot).members;
            let is_lost = |slot: &u16| members(*slot).iter().all(|no| emptied.contains(no));
            SLOTS.into_iter().filter(is_lost).collect::<Vec<u16>>()
        };
        let (lost, kept) = (lost(self), self.lists());
        self.note(format_args!(
            "{emptied:?} lose their folders, and {lost:?} all copies"
        ));
        let all: Vec<NodeNo> = self.nodes.keys().copied().collect();
        all.iter().for_each(|no| self.stop(*no));
        for no in &emptied {
            let part = self.folders.below(3) == 0;
            self.node(*no, if part { Node::keep_parts } else { Node::empty });
        }
        self.restart(&all);
        self.run(self.engine.now_us + WAIT_US)?;
        for slot in &lost {
            let chain = self.coordinator.mapping.chains.of(*slot);
            if !chain.is_halted() {
                return Err(format!("slot {slot} has no copy and continues: {chain:?}"));
            }
        }
        self.reach("slots wait for the operator because no copy is left");
        self.coordinator.accepts = true;
        self.restart(&all);
        self.run(self.engine.now_us + REPAIR_US)?;
        for (slot, lists) in self.lists() {
            let empty = Lists::new();
            let is_lost = lost.contains(&slot);
            let expected = if is_lost { &empty } else { &kept[&slot] };
            if lists != *expected {
                return Err(format!(
                    "slot {slot} has {lists:?} after the loss, and {expected:?} is expected"
                ));
            }
        }
        let operations = &mut self.clients.operations;
        operations.retain(|(slot, _), _| !lost.contains(slot));
        self.clients.stop = false;
        self.run(self.engine.now_us + WORK_US)?;
        self.clients.stop = true;
        self.run(self.engine.now_us + WAIT_US)?;
        self.judge()
    }

    /// What the heads have.
    fn lists(&self) -> BTreeMap<u16, Lists> {
        let of = |slot: u16| {
            let head = self.coordinator.mapping.chains.of(slot).head();
            let node = head.and_then(|no| self.nodes.get(&no));
            let lists = node.map(|node| node.worker(slot).store.lists(slot));
            (slot, lists.unwrap_or_default())
        };
        SLOTS.into_iter().map(of).collect()
    }
}
