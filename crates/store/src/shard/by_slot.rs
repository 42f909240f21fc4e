//! Counts the keys of each slot on a node of a cluster: keys of which it only has copies are not counted as its own.
//!
//! A database updates the counts whenever a key is added or removed, as it does for keys that another worker counts
//! (`elsewhere`). Strict keys are counted apart from those of lattice keyspaces, which every node has: the node that
//! answers for a slot's strict keys counts and lists the lattice keys as well, so that each is listed once.

use super::db::Db;
use super::elsewhere::Elsewhere;
use super::record::Head;
use super::types::{Item, Key};
use super::{Env, Shard};
use rufous_base::Now;
use rufous_base::limits::SLOTS;
use rufous_base::slot::slot_of;

/// The counts of one slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) keys: u32,
    /// Number of them that expire.
    pub(super) expiring: u32,
}

/// The counts of all slots. Empty while there are no keys.
#[derive(Debug, Default)]
struct Slots(Box<[Counts]>);

impl Slots {
    fn of(&mut self, slot: u16) -> Option<&mut Counts> {
        if self.0.is_empty() {
            self.0 = vec![Counts::default(); SLOTS].into();
        }
        self.0.get_mut(usize::from(slot))
    }

    fn is_as(&self, other: &Self) -> bool {
        let of = |slots: &Self, slot| slots.0.get(slot).copied().unwrap_or_default();
        (0..SLOTS).all(|slot| of(self, slot) == of(other, slot))
    }

    /// The sum of the counts of the slots that satisfy `has`.
    fn sum(&self, has: impl Fn(u16) -> bool) -> (usize, usize) {
        let all = self.0.iter().enumerate();
        let some = all.filter(|(slot, counts)| counts.keys > 0 && has(*slot as u16));
        some.fold((0, 0), |(keys, expiring), (_, counts)| {
            let (more, most) = (counts.keys as usize, counts.expiring as usize);
            (keys + more, expiring + most)
        })
    }
}

#[derive(Debug, Default)]
struct Both {
    strict: Slots,
    /// Lattice keys that this worker counts.
    lattice: Slots,
}

/// `None` if no counts are needed.
#[derive(Debug, Default)]
pub(super) struct BySlot(Option<Both>);

impl BySlot {
    /// The counts of an empty database that replaces this one.
    pub(super) fn of_nothing(&self) -> Self {
        Self(self.0.as_ref().map(|_| Both::default()))
    }
}

impl Both {
    fn of(&mut self, key: &[u8], elsewhere: &Elsewhere) -> Option<&mut Counts> {
        let slots = match elsewhere.is_lattice(key) {
            false => &mut self.strict,
            true if elsewhere.has(key) => return None,
            true => &mut self.lattice,
        };
        slots.of(slot_of(key))
    }
}

impl Db {
    fn counts_of(&mut self, key: &[u8]) -> Option<&mut Counts> {
        self.by_slot.0.as_mut()?.of(key, &self.elsewhere)
    }

    /// A record was added.
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

    /// A record is about to be removed; its expiry was already cleared.
    #[inline]
    pub(super) fn leave_slot(&mut self, handle: u32) {
        if self.by_slot.0.is_some() {
            let name = self.name_of(handle);
            if let Some(counts) = self.counts_of(&name) {
                counts.keys -= 1;
            }
        }
    }

    /// A record has got or lost its expiry.
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

    /// Number of strict keys of a slot, if the keys of slots are counted.
    pub(super) fn len_in_slot(&self, slot: u16) -> Option<usize> {
        let counts = &self.by_slot.0.as_ref()?.strict.0;
        let counts = counts.get(usize::from(slot));
        Some(counts.map_or(0, |counts| counts.keys as usize))
    }

    /// The counts of each slot as found by a walk.
    fn counted_by_slot(&self) -> Both {
        let mut all = Both::default();
        for (_, handle) in self.index.entries() {
            if let Some(counts) = all.of(&self.name_of(handle), &self.elsewhere) {
                counts.keys += 1;
                counts.expiring += u32::from(self.expiry_of(handle).is_some());
            }
        }
        all
    }

    /// Recounts, since the set of strict keys has changed.
    pub(super) fn recount_slots(&mut self) {
        if self.by_slot.0.is_some() {
            self.by_slot.0 = Some(self.counted_by_slot());
        }
    }

    /// Whether the counts are those that a walk finds.
    pub(super) fn is_counted_by_slot(&self) -> bool {
        self.by_slot.0.as_ref().is_none_or(|counts| {
            let all = self.counted_by_slot();
            counts.strict.is_as(&all.strict) && counts.lattice.is_as(&all.lattice)
        })
    }

    /// Whether a record is listed elsewhere: by another worker, or by the node that answers for its slot.
    pub(super) fn is_unlisted(&self, handle: u32, env: &Env) -> bool {
        self.is_guest(handle, env) || self.lists_not(self.item(handle).key, env)
    }

    fn lists_not(&self, key: &[u8], env: &Env) -> bool {
        self.elsewhere.has(key) || env.has_guests() && env.is_guest(slot_of(key))
    }
}

impl Shard {
    /// Starts counting the keys of slots.
    pub(super) fn count_slots(&mut self) {
        for db in &mut self.dbs {
            db.by_slot.0 = Some(Both::default());
            db.recount_slots();
        }
    }

    /// Number of strict keys of a slot, or 0 if another node answers for it.
    pub fn own_slot_len(&self, db: usize, slot: u16) -> usize {
        match self.env.is_guest(slot) {
            true => 0,
            false => self.dbs[db].len_in_slot(slot).unwrap_or(0),
        }
    }

    /// Number of strict keys of slots that other nodes answer for, and of those that expire.
    pub(super) fn guests_in(&self, db: usize) -> (usize, usize) {
        let counts = self.dbs[db].by_slot.0.as_ref();
        counts.map_or((0, 0), |of| of.strict.sum(|slot| self.env.is_guest(slot)))
    }

    /// The same of lattice keys that this worker would count if other nodes did not answer for their slots.
    pub(super) fn listed_by_others(&self, db: usize) -> (usize, usize) {
        let counts = self.dbs[db].by_slot.0.as_ref();
        counts.map_or((0, 0), |of| of.lattice.sum(|slot| self.env.is_guest(slot)))
    }

    /// Like [`Shard::scan`], of the keys that this worker lists.
    pub fn scan_listed(
        &mut self,
        db: usize,
        cursor: u32,
        count: usize,
        now: Now,
        f: &mut dyn FnMut(Item<'_>),
    ) -> Option<u32> {
        let (range, now_ms) = ((cursor, count), now.unix_ms());
        self.dbs[db].scan(range, now_ms, Db::is_unlisted, &mut self.env, f)
    }

    /// Whether a key exists and is listed by this worker.
    pub fn lists(&mut self, db: usize, key: Key<'_>, now: Now) -> bool {
        self.contains(db, key, now) && !self.dbs[db].lists_not(key.bytes, &self.env)
    }
}
