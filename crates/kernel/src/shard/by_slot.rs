//! Counting the strict keys of each slot, where the node is one of several: what it
//! has copies of is not counted as its own.
//!
//! A database counts whenever a key comes or goes, as it does for keys that another
//! worker counts (`elsewhere`); keys of lattice keyspaces are in no slot.

use super::Shard;
use super::db::Db;
use super::record::Head;
use rufous_base::limits::SLOTS;
use rufous_base::slot::slot_of;

/// Of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) keys: u32,
    /// Those of them that expire.
    pub(super) expiring: u32,
}

/// Of all slots; `None`: nobody asks. Empty as long as there are no keys.
#[derive(Debug, Default)]
pub(super) struct BySlot(Option<Box<[Counts]>>);

impl BySlot {
    /// For a database that takes the place of this one.
    pub(super) fn of_nothing(&self) -> Self {
        Self(self.0.as_ref().map(|_| Box::default()))
    }

    fn of(&mut self, slot: u16) -> Option<&mut Counts> {
        let counts = self.0.as_mut()?;
        if counts.is_empty() {
            *counts = vec![Counts::default(); SLOTS].into();
        }
        counts.get_mut(usize::from(slot))
    }
}

impl Db {
    fn counts_of(&mut self, key: &[u8]) -> Option<&mut Counts> {
        match self.by_slot.0.is_none() || self.elsewhere.is_lattice(key) {
            true => None,
            false => self.by_slot.of(slot_of(key)),
        }
    }

    /// A record has come.
    #[inline]
    pub(super) fn count_in_slot(&mut self, key: &[u8]) {
        if let Some(counts) = self.counts_of(key) {
            counts.keys += 1;
        }
    }

    fn name_of(&self, handle: u32) -> Box<[u8]> {
        let slot = self.arena.get(handle);
        self.key_of(Head::of(slot), slot).into()
    }

    /// A record goes, which does not expire any more.
    #[inline]
    pub(super) fn leave_slot(&mut self, handle: u32) {
        if self.by_slot.0.is_some() {
            let name = self.name_of(handle);
            if let Some(counts) = self.counts_of(&name) {
                counts.keys -= 1;
            }
        }
    }

    /// A record expires from now on, or does not any more.
    #[inline]
    pub(super) fn note_expiring_in_slot(&mut self, handle: u32, old: bool, new: bool) {
        if old != new && self.by_slot.0.is_some() {
            let name = self.name_of(handle);
            if let Some(counts) = self.counts_of(&name) {
                match new {
                    true => counts.expiring += 1,
                    false => counts.expiring -= 1,
                }
            }
        }
    }

    /// What there is of each slot, by a walk.
    pub(super) fn counted_by_slot(&self) -> Vec<Counts> {
        let mut all = vec![Counts::default(); SLOTS];
        for (_, handle) in self.index.entries() {
            let name = self.name_of(handle);
            if !self.elsewhere.is_lattice(&name) {
                let counts = &mut all[usize::from(slot_of(&name))];
                counts.keys += 1;
                counts.expiring += u32::from(self.expiry_of(handle).is_some());
            }
        }
        all
    }

    /// Counts anew: which keys are strict has changed.
    pub(super) fn recount_slots(&mut self) {
        if self.by_slot.0.is_some() {
            self.by_slot.0 = Some(match self.index.len() {
                0 => Box::default(),
                _ => self.counted_by_slot().into(),
            });
        }
    }

    /// Whether the counts are what a walk finds.
    pub(super) fn is_counted_by_slot(&self) -> bool {
        self.by_slot.0.as_ref().is_none_or(|counts| {
            let none = Counts::default();
            let all = self.counted_by_slot();
            let same = |(at, found): (usize, &Counts)| counts.get(at).unwrap_or(&none) == found;
            all.iter().enumerate().all(same)
        })
    }
}

impl Shard {
    /// Counts keys of slots from now on.
    pub(super) fn count_slots(&mut self) {
        for db in &mut self.dbs {
            db.by_slot.0 = Some(Box::default());
            db.recount_slots();
        }
    }

    /// How many keys of a slot there are, if it is this node's to answer for.
    pub fn own_slot_len(&self, db: usize, slot: u16) -> usize {
        let counts = self.dbs[db].by_slot.0.as_ref();
        let counts = counts.and_then(|counts| counts.get(usize::from(slot)));
        match self.env.is_guest(slot) {
            true => 0,
            false => counts.map_or(0, |counts| counts.keys as usize),
        }
    }

    /// Keys of slots that other nodes answer for, and those of them that expire.
    pub(super) fn guests_in(&self, db: usize) -> (usize, usize) {
        let counts = self.dbs[db].by_slot.0.as_deref().unwrap_or_default();
        let all = counts.iter().enumerate();
        let theirs =
            all.filter(|(slot, counts)| counts.keys > 0 && self.env.is_guest(*slot as u16));
        theirs.fold((0, 0), |(keys, expiring), (_, counts)| {
            (
                keys + counts.keys as usize,
                expiring + counts.expiring as usize,
            )
        })
    }
}
