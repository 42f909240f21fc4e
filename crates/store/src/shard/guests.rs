//! Slots that another node answers for: their keys are here so that this node can answer when that one has failed.
//!
//! That node decides when they expire, and which are evicted; its decisions arrive as effects. Until then a key of
//! such a slot is shown here, whatever this node's clock says of its deadline. Keys of lattice keyspaces are never guests.

use super::db::Db;
use super::{Env, Shard};
use rufous_base::Now;
use rufous_base::limits::SLOTS;
use rufous_base::slot::slot_of;

const FLUSHED_TOGETHER: usize = 1024;

/// One bit per slot.
#[derive(Debug)]
pub(super) struct Guests([u64; SLOTS / 64]);

impl Guests {
    fn has(&self, slot: u16) -> bool {
        let word = self.0[usize::from(slot) / 64 % (SLOTS / 64)];
        word >> (slot % 64) & 1 == 1
    }
}

impl Db {
    /// Whether another node decides on a record's removal.
    #[inline]
    pub(super) fn is_guest(&self, handle: u32, env: &Env) -> bool {
        match &env.guests {
            None => false,
            Some(guests) => {
                !self.is_replicated(handle) && guests.has(slot_of(self.item(handle).key))
            }
        }
    }
}

impl Env {
    pub(super) fn has_guests(&self) -> bool {
        self.guests.is_some()
    }

    /// Whether another node answers for a slot.
    pub(super) fn is_guest(&self, slot: u16) -> bool {
        self.guests.as_ref().is_some_and(|guests| guests.has(slot))
    }
}

impl Shard {
    /// Marks all slots as other nodes' until [`Shard::set_guest`] says otherwise.
    pub fn invite_all(&mut self) {
        self.env.guests = Some(Box::new(Guests([u64::MAX; SLOTS / 64])));
        self.count_slots();
    }

    /// Sets whether another node answers for a slot.
    pub fn set_guest(&mut self, slot: u16, is_guest: bool) {
        let Some(guests) = &mut self.env.guests else {
            return;
        };
        if let Some(word) = guests.0.get_mut(usize::from(slot) / 64) {
            let bit = 1 << (slot % 64);
            *word = match is_guest {
                true => *word | bit,
                false => *word & !bit,
            };
        }
    }

    /// Removes the keys of a database that this node answers for, one by one, since effects on a slot go along its
    /// chain. Lattice keys stay.
    pub fn flush_own(&mut self, db: usize, now: Now) {
        let mut cursor = Some(0);
        while let Some(at) = cursor {
            let mut names: Vec<Box<[u8]>> = Vec::new();
            cursor = self.scan(db, at, FLUSHED_TOGETHER, now, &mut |item| {
                if !item.value.tag().is_some_and(|tag| tag.is_replicated()) {
                    names.push(item.key.into());
                }
            });
            for name in &names {
                let key = self.key(name);
                self.remove(db, key, now);
            }
        }
    }
}
