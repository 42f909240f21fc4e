//! Counts a replicated key once: at the worker that lists it, its primary. Next to the number of all its records, a
//! database keeps the number of those that another worker counts, updated whenever one is added or removed, so that
//! counting needs no walk.

use super::Shard;
use super::db::Db;
use super::lattice::Keying;
use super::record::Head;
use rufous_base::limits::DATABASES;
use std::sync::Arc;

/// Records of a database that another worker counts.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    /// Determines which keys these are; `None`: there are none.
    keying: Option<Arc<dyn Keying>>,
    pub(super) keys: usize,
    /// Number of them that expire.
    pub(super) expiring: usize,
}

impl Elsewhere {
    /// The counts of an empty database that replaces this one.
    pub(super) fn of_nothing(&self) -> Self {
        Self {
            keying: self.keying.clone(),
            ..Self::default()
        }
    }

    /// Whether a key is of a lattice keyspace.
    pub(super) fn is_lattice(&self, key: &[u8]) -> bool {
        let keying = self.keying.as_ref();
        keying.is_some_and(|keying| keying.of(key).is_some())
    }

    #[inline]
    pub(super) fn has(&self, key: &[u8]) -> bool {
        let keying = self.keying.as_ref();
        keying.is_some_and(|keying| keying.is_elsewhere(key))
    }

    /// A record was added.
    #[inline]
    pub(super) fn add(&mut self, key: &[u8]) {
        if self.has(key) {
            self.keys += 1;
        }
    }
}

impl Db {
    fn is_elsewhere(&self, handle: u32) -> bool {
        let slot = self.arena.get(handle);
        self.elsewhere.has(self.key_of(Head::of(slot), slot))
    }

    /// A record is about to be removed; its expiry was already cleared.
    #[inline]
    pub(super) fn leave(&mut self, handle: u32) {
        self.leave_slot(handle);
        if self.elsewhere.keying.is_some() && self.is_elsewhere(handle) {
            self.elsewhere.keys -= 1;
        }
    }

    /// A record has got or lost its expiry.
    #[inline]
    pub(super) fn note_expiring(&mut self, handle: u32, old: bool, new: bool) {
        self.note_expiring_in_slot(handle, old, new);
        if old == new || self.elsewhere.keying.is_none() || !self.is_elsewhere(handle) {
            return;
        }
        match new {
            true => self.elsewhere.expiring += 1,
            false => self.elsewhere.expiring -= 1,
        }
    }

    /// The counts as found by a walk.
    pub(super) fn count_elsewhere(&self) -> (usize, usize) {
        if self.elsewhere.keying.is_none() {
            return (0, 0);
        }
        let theirs = self.index.entries().map(|(_, handle)| handle);
        let theirs = theirs.filter(|&handle| self.is_elsewhere(handle));
        theirs.fold((0, 0), |(keys, expiring), handle| {
            let expires = self.expiry_of(handle).is_some();
            (keys + 1, expiring + usize::from(expires))
        })
    }
}

impl Shard {
    /// Sets which keys of clients another worker counts, and recounts.
    pub fn set_counted(&mut self, keying: Option<&Arc<dyn Keying>>) {
        for db in &mut self.dbs[..DATABASES] {
            db.elsewhere.keying = keying.cloned();
            (db.elsewhere.keys, db.elsewhere.expiring) = db.count_elsewhere();
            db.recount_slots();
        }
    }

    /// Like [`Shard::len`], but of the keys that this worker lists, and not those that another worker or node lists.
    pub fn listed_len(&self, db: usize) -> usize {
        self.own_len(db) - self.dbs[db].elsewhere.keys - self.listed_by_others(db).0
    }

    /// Like [`Shard::listed_len`], but including lattice keys that others list.
    pub fn own_len(&self, db: usize) -> usize {
        self.dbs[db].len() - self.guests_in(db).0
    }

    /// Number of keys that this worker lists and that expire.
    pub fn listed_expiring_len(&self, db: usize) -> usize {
        let theirs = self.guests_in(db).1 + self.listed_by_others(db).1;
        self.dbs[db].expiring() - self.dbs[db].elsewhere.expiring - theirs
    }
}
