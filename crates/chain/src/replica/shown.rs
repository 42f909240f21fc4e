//! What a replica shows of its slots to who embeds it.

use super::{Refused, Replica};
use rufous_mapping::NodeNo;

impl Replica {
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
}
