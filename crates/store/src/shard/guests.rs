//! Slots that another node answers for: their keys are here so that this node can answer when that one has failed.
//!
//! That node decides when they expire, and which are evicted; its decisions arrive as effects. Until then a key of
//! such a slot is shown here, whatever this node's clock says of its deadline. Keys of lattice keyspaces are never guests.

use super::records::Records;
use rufous_base::limits::SLOTS;
use rufous_base::slot::slot_of;

/// One bit per slot; `None` while this node answers for all.
#[derive(Debug, Default)]
pub(super) struct Guests(Option<Box<[u64; SLOTS / 64]>>);

impl Guests {
    /// Another node answers for every slot from now on.
    pub(super) fn invite_all(&mut self) {
        self.0 = Some(Box::new([u64::MAX; SLOTS / 64]));
    }

    /// Sets whether another node answers for a slot; of no effect before [`Guests::invite_all`].
    pub(super) fn set(&mut self, slot: u16, is_guest: bool) {
        let Some(words) = &mut self.0 else {
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
        self.0.is_some()
    }

    /// Whether another node answers for a slot.
    pub(super) fn has(&self, slot: u16) -> bool {
        self.0.as_ref().is_some_and(|words| {
            let word = words[usize::from(slot) / 64 % (SLOTS / 64)];
            word >> (slot % 64) & 1 == 1
        })
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
    }
}
