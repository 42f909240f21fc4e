//! Slots that another node answers for: their keys are here so that this node can answer when that one has failed.
//!
//! That node decides when they expire, and which are evicted; its decisions arrive as effects. Until then a key of
//! such a slot is shown here, whatever this node's clock says of its deadline. Keys of lattice keyspaces are never guests.

use super::records::Records;
use rufous_base::limits::SLOTS;
use rufous_base::slot::slot_of;

/// One bit per slot.
type Bits = Box<[u64; SLOTS / 64]>;

fn has_bit(bits: &Bits, slot: u16) -> bool {
    bits[usize::from(slot) / 64 % (SLOTS / 64)] >> (slot % 64) & 1 == 1
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Guests {
    /// `None` while this worker answers for all.
    of_others: Option<Bits>,
    /// Slots that some worker of this node answers for by the mapping; `None`: all.
    of_node: Option<Bits>,
}

impl Guests {
    /// Another node answers for every slot from now on.
    pub(super) fn invite_all(&mut self) {
        self.of_others = Some(Box::new([u64::MAX; SLOTS / 64]));
    }

    /// Sets whether another node answers for a slot; of no effect before [`Guests::invite_all`].
    pub(super) fn set(&mut self, slot: u16, is_guest: bool) {
        let Some(words) = &mut self.of_others else {
            return;
        };
        if let Some(word) = words.get_mut(usize::from(slot) / 64) {
            let bit = 1 << (slot % 64);
            *word = if is_guest { *word | bit } else { *word & !bit };
        }
    }

    /// Whether any slot was ever another node's.
    #[inline]
    pub(super) fn any(&self) -> bool {
        self.of_others.is_some()
    }

    /// Whether another node answers for a slot.
    pub(super) fn has(&self, slot: u16) -> bool {
        let bits = self.of_others.as_ref();
        bits.is_some_and(|bits| has_bit(bits, slot))
    }

    /// Sets which slots the workers of this node answer for, by the mapping.
    pub(super) fn set_of_node(&mut self, slots: impl Iterator<Item = u16>) {
        let mut bits = Box::new([0; SLOTS / 64]);
        for slot in slots {
            if let Some(word) = bits.get_mut(usize::from(slot) / 64) {
                *word |= 1 << (slot % 64);
            }
        }
        self.of_node = Some(bits);
    }

    /// Whether a worker of this node answers for a slot.
    pub(super) fn are_of_node(&self, slot: u16) -> bool {
        let bits = self.of_node.as_ref();
        bits.is_none_or(|bits| has_bit(bits, slot))
    }

    /// Whether another node answers for a key's slot.
    pub(super) fn have(&self, key: &[u8]) -> bool {
        self.any() && self.has(slot_of(key))
    }

    /// Whether another node decides on a record's removal.
    #[inline]
    pub(super) fn decide_on(&self, records: &Records, handle: u32) -> bool {
        self.any() && !records.is_replicated(handle) && self.has(slot_of(records.key(handle)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_guests_until_this_node_answers_for_them() {
        let mut guests = Guests::default();
        guests.set(7, true);
        assert!(!guests.any() && !guests.has(7) && !guests.have(b"key"));
        guests.invite_all();
        let slot = slot_of(b"key");
        assert!(guests.have(b"key") && guests.has(slot) && guests.has(SLOTS as u16 - 1));
        guests.set(slot, false);
        assert!(!guests.have(b"key") && !guests.has(slot) && guests.any());
        let others = (0..SLOTS as u16).filter(|of| guests.has(*of)).count();
        assert_eq!(others, SLOTS - 1);
        guests.set(slot, true);
        assert!(guests.have(b"key"));
        assert!(guests.are_of_node(slot));
        guests.set_of_node([7, slot].into_iter());
        assert!(guests.are_of_node(slot) && guests.are_of_node(7) && !guests.are_of_node(8));
    }
}
