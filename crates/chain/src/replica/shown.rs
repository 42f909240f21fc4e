//! What a replica shows of its slots to who embeds it.

use super::Replica;
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
