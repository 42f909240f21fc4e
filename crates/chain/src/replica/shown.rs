//! What a replica shows of its slots to who embeds it.

use super::{Refused, Replica};
use rufous_mapping::NodeNo;
use std::collections::BTreeSet;

/// How many slots this node answers for, as far as leases go; is a member of the chains
/// of; has all data of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub open: u64,
    pub member: u64,
    pub whole: u64,
}

impl Replica {
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for slot in self.slots.values() {
            counts.open += u64::from(slot.is_open());
            counts.member += u64::from(slot.is_member());
            counts.whole += u64::from(slot.is_complete());
        }
        counts
    }

    pub fn me(&self) -> NodeNo {
        self.me
    }

    /// Whether this node has all of a slot and says, as the head of its chain,
    /// what becomes of it; with leases it answers for it, too.
    pub fn is_open(&self, slot: u16) -> bool {
        self.slots.get(&slot).is_some_and(|slot| slot.is_open())
    }

    /// Whether what any member has here is what is acknowledged, so that it may
    /// be read.
    pub fn may_read(&self, slot: u16, mono_us: u64) -> bool {
        let known = self.slots.get(&slot);
        known.is_some_and(|known| known.is_clean() && self.is_granted(slot, known, mono_us))
    }

    /// Whether this node is the head of a slot's chain, of what it acts by.
    pub fn is_head(&self, slot: u16) -> bool {
        let known = self.slots.get(&slot);
        known.is_some_and(|known| known.chain.head() == Some(self.me))
    }

    /// Whether a read of a slot may be answered here: by its head, or by any member
    /// that has nothing but what is acknowledged. One that has more has to wait for
    /// little: who sends clients on to the head would have those come back that
    /// choose another member on purpose.
    pub fn reads(&self, slot: u16, mono_us: u64) -> Result<(), Refused> {
        if self.may_read(slot, mono_us) {
            return Ok(());
        }
        let serves = self.serves(slot, mono_us);
        let known = self.slots.get(&slot);
        match known.is_some_and(|known| known.is_member() && known.is_complete()) {
            true => serves.map_err(|_| Refused::NotYet),
            false => serves,
        }
    }

    pub fn is_member(&self, slot: u16) -> bool {
        self.slots.get(&slot).is_some_and(|slot| slot.is_member())
    }

    /// Whether something may be here of a slot that is not all of it.
    pub fn has_part(&self, slot: u16) -> bool {
        let known = self.slots.get(&slot);
        self.cleared.contains(&slot) || known.is_some_and(|slot| !slot.is_complete())
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

    /// Slots whose chain is another, or has become active, since this was asked last.
    pub fn take_changed(&mut self) -> BTreeSet<u16> {
        std::mem::take(&mut self.changed)
    }

    /// Slots whose learners have all, and those that this node may leave as it waits for no
    /// write in them any more; with the epochs of their chains.
    pub fn synced(&self) -> impl Iterator<Item = (u16, NodeNo, u64)> {
        let synced = self.taught.iter().filter_map(|number| {
            let slot = self.slots.get(number)?;
            Some((*number, slot.synced()?, slot.chain.since))
        });
        let leaving = self.leaving.iter().filter_map(|number| {
            let slot = self.slots.get(number)?;
            // One that is broken waits for nothing but that.
            let may_leave = slot.is_broken() || !self.waits_in(*number);
            may_leave.then_some((*number, self.me, slot.chain.since))
        });
        synced.chain(leaving)
    }

    /// Whether a write that this node did as a slot's head is not acknowledged yet.
    fn waits_in(&self, number: u16) -> bool {
        let acked = self.slots.get(&number).map_or(0, |slot| slot.acked);
        let mut waiting = self.waiting.iter();
        waiting.any(|(_, slot, seq)| *slot == number && *seq > acked)
    }
}
