//! A new epoch takes effect at a worker.

use super::{Replica, Store};
use crate::slot::Out;
use rufous_base::slot::slots_of_worker;
use rufous_mapping::{Chain, Invalid, Mapping, Phase};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

impl Replica {
    /// Applies a new epoch to the slots of this worker. False if it is not newer, or while the
    /// mapping has this node with another incarnation or number of workers, as its chains then rely
    /// on data that was lost in the restart. A mapping that cannot follow the one in force is an
    /// error, whichever node has planned it.
    pub fn take_up(
        &mut self,
        mapping: &Arc<Mapping>,
        store: &mut impl Store,
        mono_us: u64,
    ) -> Result<bool, Invalid> {
        let me = mapping.members.get(&self.me);
        let is_me =
            me.is_none_or(|me| me.incarnation == self.incarnation && me.workers == self.workers);
        if mapping.epoch <= self.epoch() || !is_me {
            return Ok(false);
        }
        mapping.check()?;
        if let Some(before) = &self.mapping {
            mapping.comes_after(before)?;
        }
        self.mapping = Some(Arc::clone(mapping));
        self.forget_what_is_acknowledged();
        let mine = slots_of_worker(self.worker.into(), self.workers.into());
        let mut out = Out::new();
        for (slots, chain) in mapping.chains.ranges() {
            let slots = slots.start.max(mine.start)..slots.end.min(mine.end);
            if chain.names(self.me)
                || chain.is_idle(self.me) && chain.holders().any(|no| no == self.me)
            {
                slots.for_each(|number| self.enter(number, chain, store, &mut out));
            } else if !slots.is_empty() {
                self.leave(slots, chain, store);
            }
        }
        self.leaving = self.to_be_left(mapping);
        self.forget_what_was_left();
        self.send(out);
        self.ask(mono_us);
        self.tell_former(mono_us);
        self.tick(mono_us);
        Ok(true)
    }

    /// This node is in a slot's chain, or keeps its copy.
    fn enter(&mut self, number: u16, chain: &Chain, store: &mut impl Store, out: &mut Out) {
        let (me, is_clear) = (self.me, !self.cleared.contains(&number));
        let slot = self.entry(number);
        if slot.chain == *chain {
            return;
        }
        if chain.is_idle(me) {
            slot.keep(*chain, store);
            self.changed.insert(number);
            return;
        }
        // The same chain in another phase.
        if slot.chain.since == chain.since {
            slot.chain = *chain;
            return;
        }
        let held_since = slot.held_since;
        slot.set_chain(*chain, is_clear, store, out);
        let is_lossy = slot.goes_on_with_loss(held_since);
        match slot.is_clear() {
            true => self.cleared.remove(&number),
            false => self.cleared.insert(number),
        };
        self.changed.insert(number);
        if is_lossy {
            self.lossy.insert(number);
        }
    }

    /// It is not in the chain of these slots.
    fn leave(&mut self, slots: Range<u16>, chain: &Chain, store: &mut impl Store) {
        let known = self.slots.range(slots);
        let known = known.filter(|(_, slot)| slot.chain != *chain);
        let known: Vec<u16> = known.map(|(number, _)| number).collect();
        for number in known {
            if let Some(mut slot) = self.slots.remove(number) {
                slot.end_copy(store);
                self.cleared.insert(number);
                self.changed.insert(number);
            }
        }
    }

    /// Slots that this node keeps until it is not needed there: the planner has put it behind the
    /// nodes that the ring places there.
    fn to_be_left(&self, mapping: &Mapping) -> BTreeSet<u16> {
        let is_last = |slot: &super::SlotChain| {
            let members = &slot.chain.members;
            members.len() > 1 && members.last() == Some(&self.me)
        };
        let last = self.slots.iter().filter(|(_, slot)| is_last(slot));
        let unwanted = last.filter(|(slot, _)| !mapping.ring.owners(*slot).contains(&self.me));
        unwanted.map(|(slot, _)| slot).collect()
    }

    /// Acknowledged writes are not lost with their slots, although earlier writes to other slots
    /// may still wait.
    fn forget_what_is_acknowledged(&mut self) {
        let slots = &self.slots;
        let acked = |slot: &u16| slots.get(*slot).map_or(0, |slot| slot.acked);
        self.waiting.retain(|(_, slot, seq)| *seq > acked(slot));
    }

    fn forget_what_was_left(&mut self) {
        let slots = &self.slots;
        // Others may go on without the last writes of this node.
        let is_member = |slot: &u16| slots.get(*slot).is_some_and(|slot| slot.is_member());
        let before = self.waiting.len();
        self.waiting.retain(|(_, slot, _)| is_member(slot));
        self.lost |= self.waiting.len() < before;
        let copies = |number: &u16| {
            let slot = slots.get(*number);
            slot.is_some_and(|slot| slot.learns().is_some())
        };
        self.copied.retain(copies);
        let is_broken = |number: &u16| slots.get(*number).is_some_and(|slot| slot.is_broken());
        self.broken.retain(is_broken);
        let asked = slots
            .iter()
            .filter(|(_, slot)| slot.chain.phase != Phase::Acts);
        self.asked = asked.map(|(number, _)| number).collect();
        let taught = slots
            .iter()
            .filter(|(_, slot)| slot.chain.learner.is_some());
        self.taught = taught.map(|(number, _)| number).collect();
        let acting = self.slots.iter().filter(|(_, slot)| !slot.is_idle());
        let mut peers = BTreeSet::new();
        for (number, slot) in acting {
            let others = slot.chain.named().filter(|no| *no != self.me);
            peers.extend(others.map(|no| self.peer_at(no, number)));
        }
        self.peers = peers;
    }
}
