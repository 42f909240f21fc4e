//! Which replies depend on writes that other nodes may not have yet.

use super::ChainHost;
use super::withheld::{Fate, Item};
use crate::placement::Placement;
use crate::planted::{self, Planted};
use rufous_base::slot::slot_of;
use rufous_chain::planted as chain;

/// Whether replies wait for all writes of the worker, by mistake.
fn is_of_worker() -> bool {
    chain::is(chain::Planted::GatesOfWorker)
}

impl ChainHost {
    /// The slots of the strict keys among these. None are named while no slot has copies at other
    /// nodes: then nothing depends on other nodes.
    pub(in crate::worker) fn slots_of<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k [u8]>,
        placement: &Placement,
    ) -> Vec<u16> {
        if self.is_alone || planted::is(Planted::AllTakenForLattice) {
            return Vec::new();
        }
        let mut slots: Vec<u16> = Vec::new();
        for key in keys {
            if placement.lattice(key).is_none() {
                let slot = slot_of(key);
                if !slots.contains(&slot) {
                    slots.push(slot);
                }
            }
        }
        slots
    }

    /// Whether what was read from these slots, or written to them, may be unknown to other nodes
    /// that have copies. `journaled`: the length of the journal.
    pub(in crate::worker) fn awaits(&self, slots: &[u16], journaled: usize) -> bool {
        let Some(replica) = self.replica.as_ref().filter(|_| !self.is_alone) else {
            return false;
        };
        // What was written since then is sorted by slots when the frame ends: until then it may
        // concern any slot.
        let is_open = journaled > self.taken;
        let awaits =
            |slot: &u16| replica.awaits_copies(*slot) || is_open && replica.is_shared(*slot);
        !planted::is(Planted::GatesOpen) && slots.iter().any(awaits)
    }

    /// Keeps what depends on these slots until all copies have their writes.
    pub(in crate::worker) fn withhold(&mut self, slots: &[u16], item: Item) {
        self.withheld.on_item(slots, item);
    }

    /// The chain of a slot may have progressed.
    pub(super) fn release(&mut self, slot: u16) {
        if !self.withheld.is_empty() {
            if is_of_worker() {
                return self.release_all();
            }
            let acknowledged = self.acknowledged(slot);
            self.withheld.on_acknowledged(slot, acknowledged);
        }
    }

    /// Any chain may have progressed, or changed.
    pub(super) fn release_all(&mut self) {
        if self.withheld.is_empty() {
            return;
        }
        let mut withheld = std::mem::take(&mut self.withheld);
        withheld.on_chains(|slot| self.acknowledged(slot));
        self.withheld = withheld;
    }

    /// The last acknowledged write of a slot, if this node is in its chain.
    fn acknowledged(&self, slot: u16) -> Option<u64> {
        let replica = self.replica.as_ref()?;
        let acknowledged = replica.acknowledged(slot)?;
        let waits = replica.settled() < replica.position();
        if waits && is_of_worker() {
            Some(0)
        } else {
            Some(acknowledged)
        }
    }

    #[inline]
    pub(in crate::worker) fn has_released(&self) -> bool {
        self.withheld.has_ended()
    }

    /// What waits for copies no longer.
    pub(in crate::worker) fn take_released(&mut self) -> Vec<(Item, Fate)> {
        self.withheld.take_ended()
    }
}
