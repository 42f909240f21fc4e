//! A node drains while nothing fails: no slot is without a node that serves it for as long as a lease lasts.

use super::super::SLOTS;
use super::{Node, World};
use rufous_mapping::NodeNo;

/// How long the drain may take.
const DRAIN_US: u64 = 10_000_000;
/// The longest time in which no node serves a slot. Workers hear of an epoch one by one, in tens of
/// milliseconds; leases last for a second, and are asked for four times in it.
const UNSERVED_US: u64 = 650_000;

/// When each slot was served last.
#[derive(Clone, Debug)]
pub(super) struct Moves {
    served_us: [u64; SLOTS.len()],
}

impl World {
    /// After quiet, the member with the highest number drains, if others can have its slots.
    pub(super) fn drain_one(&mut self) -> Result<(), String> {
        let members = &self.coordinator.mapping.members;
        let last = members.keys().next_back().copied();
        let Some(no) = last.filter(|_| members.len() > 1) else {
            return Ok(());
        };
        self.note(format_args!("{no} drains in quiet"));
        self.coordinator.seen.draining.insert(no);
        self.moves = Some(Moves {
            served_us: [self.engine.now_us; SLOTS.len()],
        });
        self.run(self.engine.now_us + DRAIN_US)?;
        if self.coordinator.mapping.chains.name(no) {
            return Err(format!("{no} still has slots"));
        }
        self.reach("a node has drained in quiet");
        Ok(())
    }

    /// A step is done.
    pub(super) fn all_are_served(&mut self) -> Result<(), String> {
        let now = self.engine.now_us;
        let (Some(moves), nodes) = (&mut self.moves, &self.nodes) else {
            return Ok(());
        };
        for (slot, served_us) in SLOTS.into_iter().zip(&mut moves.served_us) {
            let serves = |node: &Node| {
                let local = node.clock(now);
                node.worker(slot).replica.serves(slot, local).is_ok()
            };
            if nodes.values().any(serves) {
                *served_us = now;
            } else if now - *served_us > UNSERVED_US {
                let chain = self.coordinator.mapping.chains.of(slot);
                let head: Option<NodeNo> = chain.head();
                let head = head.and_then(|no| nodes.get(&no));
                let state = head.map(|node| &node.worker(slot).replica);
                return Err(format!(
                    "no node has served slot {slot} since {served_us}: {chain:?}\n{state:?}"
                ));
            }
        }
        Ok(())
    }
}
