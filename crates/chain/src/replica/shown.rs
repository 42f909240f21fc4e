//! A replica's state, for the embedder.

use super::{Refused, Replica};
use crate::slot::SlotChain;
use rufous_mapping::NodeNo;
use rufous_mapping::planner::Copy;
use std::collections::BTreeSet;

/// How many slots this node serves, as far as leases go; is in the chains of; has all data of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub open: u64,
    pub member: u64,
    pub whole: u64,
}

impl Replica {
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for (_, slot) in self.slots.iter() {
            counts.open += u64::from(slot.is_open());
            counts.member += u64::from(slot.is_member());
            counts.whole += u64::from(slot.is_complete());
        }
        counts
    }

    /// The number of slots of which this node is the head and which it does not serve: it lacks data,
    /// or leases of others.
    pub fn unserved(&self, mono_us: u64) -> usize {
        // As a rule all leases are there, and none has to be looked for slot by slot.
        let has_all = self
            .peers
            .iter()
            .all(|peer| self.leases.holds(*peer, mono_us));
        let is_head = |slot: &SlotChain| slot.chain.head() == Some(self.me);
        let serves = |no: u16, slot: &SlotChain| {
            slot.is_open() && (has_all || self.is_granted(no, slot, mono_us))
        };
        let heads = self.slots.iter().filter(|(_, slot)| is_head(slot));
        heads.filter(|(no, slot)| !serves(*no, slot)).count()
    }

    pub fn me(&self) -> NodeNo {
        self.me
    }

    /// Whether this node, as the head of the slot's chain, has all of its data and orders its
    /// writes; with leases it serves the slot, too.
    pub fn is_open(&self, slot: u16) -> bool {
        self.slots.get(slot).is_some_and(|slot| slot.is_open())
    }

    /// Whether all writes that this node has of the slot are acknowledged, so that any member may
    /// serve reads.
    pub fn may_read(&self, slot: u16, mono_us: u64) -> bool {
        let known = self.slots.get(slot);
        known.is_some_and(|known| known.is_clean() && self.is_granted(slot, known, mono_us))
    }

    /// Whether this node is the head of a slot's chain in the mapping in force.
    pub fn is_head(&self, slot: u16) -> bool {
        let known = self.slots.get(slot);
        known.is_some_and(|known| known.chain.head() == Some(self.me))
    }

    /// Whether this node may serve a read of a slot: its head may, and any member that has only
    /// acknowledged writes. A member with more writes makes the read wait, which is short: if it
    /// sent clients to the head, those that choose another member on purpose would come back.
    pub fn reads(&self, slot: u16, mono_us: u64) -> Result<(), Refused> {
        if self.may_read(slot, mono_us) {
            return Ok(());
        }
        let serves = self.serves(slot, mono_us);
        let known = self.slots.get(slot);
        match known.is_some_and(|known| known.is_member() && known.is_complete()) {
            true => serves.map_err(|_| Refused::NotYet),
            false => serves,
        }
    }

    /// The nodes that have a copy of the slot, or make one.
    pub fn named(&self, slot: u16) -> Vec<NodeNo> {
        let known = self.slots.get(slot);
        known.map_or_else(Vec::new, |known| known.chain.named().collect())
    }

    /// Whether another node has a copy of the slot, or makes one.
    pub fn is_shared(&self, slot: u16) -> bool {
        let known = self.slots.get(slot);
        known.is_some_and(|known| known.chain.named().count() > 1)
    }

    /// Whether another member may have all of a slot.
    pub fn has_other_member(&self, slot: u16) -> bool {
        let known = self.slots.get(slot);
        known.is_some_and(|known| known.chain.members.len() > 1)
    }

    /// Whether writes to a slot are not acknowledged by all nodes that have copies.
    pub fn awaits_copies(&self, slot: u16) -> bool {
        let known = self.slots.get(slot);
        known.is_some_and(|known| known.acked < known.seq && known.chain.named().count() > 1)
    }

    /// Slots with writes that not all copies have acknowledged: the last one that is, and the size of
    /// those that are not.
    pub fn unacknowledged(&self) -> impl Iterator<Item = (u16, u64, usize)> {
        let waits = self.slots.iter().filter(|(_, slot)| slot.acked < slot.seq);
        waits.map(|(number, slot)| (number, slot.acked, slot.unacked_bytes()))
    }

    /// The size of the writes of a slot that are not acknowledged.
    pub fn unacknowledged_bytes(&self, slot: u16) -> usize {
        let known = self.slots.get(slot);
        known.map_or(0, |known| known.unacked_bytes())
    }

    /// The node that makes a copy of a slot, if this node has a part in its chain.
    pub fn learner(&self, slot: u16) -> Option<NodeNo> {
        self.slots.get(slot)?.chain.learner
    }

    /// The epoch since which the chain of a slot is unchanged, if this node has a part in it.
    pub fn since(&self, slot: u16) -> Option<u64> {
        self.slots.get(slot).map(|known| known.chain.since)
    }

    /// The last write of a slot here, and 0 if this node is not in its chain.
    pub fn last_write(&self, slot: u16) -> u64 {
        self.slots.get(slot).map_or(0, |known| known.seq)
    }

    /// The last write of a slot that all members behind this one have acknowledged, if this node is
    /// a member.
    pub fn acknowledged(&self, slot: u16) -> Option<u64> {
        let known = self.slots.get(slot).filter(|known| known.is_member());
        known.map(|known| known.acked)
    }

    pub fn is_member(&self, slot: u16) -> bool {
        self.slots.get(slot).is_some_and(|slot| slot.is_member())
    }

    /// Whether a slot waits for leases that were granted in earlier epochs.
    pub fn outwaits(&self) -> bool {
        self.activate_at.is_some()
    }

    /// This node's copy of a slot, if all of the slot's data is here.
    pub fn copy_of(&self, slot: u16) -> Option<Copy> {
        self.slots.get(slot)?.copy_here()
    }

    /// Whether there may be partial data of a slot.
    pub fn has_part(&self, slot: u16) -> bool {
        let known = self.slots.get(slot);
        self.cleared.contains(&slot)
            || known.is_some_and(|slot| !slot.is_complete() && !slot.never_acted())
    }

    /// Whether [`Replica::work`] has something to do.
    pub fn has_work(&self) -> bool {
        !self.copied.is_empty() || !self.cleared.is_empty()
    }

    /// Slots that wait for this node to be taken out of their chains: see
    /// [`Replica::learn_anew`].
    pub fn broken(&self) -> impl Iterator<Item = u16> {
        self.broken.iter().copied()
    }

    /// Slots whose chain has changed, or become active, since the last call.
    pub fn take_changed(&mut self) -> BTreeSet<u16> {
        std::mem::take(&mut self.changed)
    }

    /// Slots that this node goes on with although the ends of their logs may be missing, since the last
    /// call. A restart before the mark of the chain is logged lists them again.
    pub fn take_lossy(&mut self) -> Vec<u16> {
        let lossy = std::mem::take(&mut self.lossy).into_iter();
        lossy.filter(|slot| self.is_member(*slot)).collect()
    }

    /// Slots whose learners are complete, and those that this node may leave because it waits for
    /// no write in them; with the epochs of their chains.
    pub fn synced(&self) -> impl Iterator<Item = (u16, NodeNo, u64)> {
        let synced = self.taught.iter().filter_map(|number| {
            let slot = self.slots.get(*number)?;
            Some((*number, slot.synced()?, slot.chain.since))
        });
        let leaving = self.leaving.iter().filter_map(|number| {
            let slot = self.slots.get(*number)?;
            // A broken slot waits only for being left.
            let may_leave = slot.is_broken() || !self.waits_in(*number);
            may_leave.then_some((*number, self.me, slot.chain.since))
        });
        synced.chain(leaving)
    }

    /// What this node has of the slots of whose chains no node acts.
    pub fn held(&self) -> impl Iterator<Item = (u16, Option<Copy>)> {
        let never = |number: &u16| {
            let slot = self.slots.get(*number).filter(|_| self.keeps_all);
            slot.is_some_and(|slot| slot.never_acted())
                .then_some(Copy::NEVER_ACTED)
        };
        let slots = self.asked.iter();
        slots.map(move |number| (*number, self.copy_of(*number).or_else(|| never(number))))
    }

    /// Whether a write that this node executed as a slot's head is not acknowledged yet.
    fn waits_in(&self, number: u16) -> bool {
        let acked = self.slots.get(number).map_or(0, |slot| slot.acked);
        let mut waiting = self.waiting.iter();
        waiting.any(|(_, slot, seq)| *slot == number && *seq > acked)
    }
}

#[cfg(test)]
mod tests {
    use crate::replica::tests::{SLOTS_USED, World, peer};
    use rufous_mapping::NodeNo;

    #[test]
    fn slots_without_leases_are_not_served_by_their_head() {
        let mut world = World::new(&[1, 1]);
        world.agree(&[0, 1], None);
        world.all_take_up();
        world.deaf = Some(0);
        world.run(20);
        let unserved =
            |world: &World, node: u16| world.replicas[&peer(node, 0)].0.unserved(world.now);
        assert_eq!(unserved(&world, 0), SLOTS_USED.len());
        assert_eq!(unserved(&world, 1), 0, "it is the head of none");
        world.deaf = None;
        // Messages are lost only with their session: another one repeats them.
        for node in 0..2 {
            let (replica, _) = world.replicas.get_mut(&peer(node, 0)).expect("there");
            replica.peer_up(NodeNo(1 - node));
        }
        world.run(20);
        assert_eq!(unserved(&world, 0), 0);
    }
}
