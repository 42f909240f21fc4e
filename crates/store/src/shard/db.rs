//! One numbered database: its records with their deadlines, the graves of replicated values, and counts. It keeps
//! these parts together and reads them; `write.rs` writes strings, `expiring.rs` removes what has expired.
//!
//! Invariants:
//! 1. A key that has a record has no grave.
//! 2. `deadlines` and `census` are those of the records.

#[cfg(test)]
mod tests;

use super::beside::Outside;
use super::census::Census;
use super::deadlines::Deadlines;
use super::env::Env;
use super::garbage::GarbageList;
use super::graves::Graves;
use super::guests::Guests;
use super::listing::Listing;
use super::record::{self, Head, INLINE};
use super::records::{Found, NewRecord, Records};
use super::types::{Any, Item, Key, Memory, Value};
use rufous_base::Now;
use rufous_base::rng::Rng;

/// Draws of keys that are not listed, before a random key is given up.
const MAX_DRAWS: u32 = 256;

/// What a database was at the last cut of a snapshot.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cut {
    pub(super) number: u8,
    /// All nodes had received everything up to this time of a stamp.
    pub(super) horizon: u64,
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Db {
    /// The number by which it is selected.
    pub(super) number: u8,
    pub(super) records: Records,
    pub(super) deadlines: Deadlines,
    /// Graves of replicated values that show nothing.
    pub(super) graves: Graves,
    pub(super) census: Census,
    pub(super) cut: Cut,
}

/// A range of a walk, and the time from which records are due.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub(super) cursor: u32,
    pub(super) count: usize,
    pub(super) now_ms: u64,
}

impl Db {
    pub(super) fn new(number: u8) -> Self {
        Self {
            number,
            ..Self::default()
        }
    }

    /// An empty database that replaces this one under a number.
    pub(super) fn of_nothing(&self, number: u8) -> Self {
        Self {
            number,
            records: self.records.of_nothing(),
            graves: self.graves.of_nothing(),
            census: self.census.of_nothing(),
            ..Self::default()
        }
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether the database is empty, graves included.
    pub(super) fn is_void(&self) -> bool {
        self.records.len() == 0 && self.graves.len() == 0
    }

    /// The value, with all side effects of a read. The path that nearly every read takes is one straight piece of
    /// code, so that the head is decoded once.
    #[inline]
    pub(super) fn get(
        &mut self,
        key: Key<'_>,
        touch: bool,
        now: Now,
        env: &mut Env,
    ) -> Option<Any<'_>> {
        let probe = self.records.probe(key.hash);
        if probe.handle != 0
            && let Some(head) = self.records.matching(probe.handle, key.bytes)
        {
            return self.read((probe.found(), head), key, touch, now, env);
        }
        if probe.handle == 0 && !probe.further {
            return None;
        }
        self.get_further(key, touch, now, env)
    }

    #[inline(never)]
    fn get_further(
        &mut self,
        key: Key<'_>,
        touch: bool,
        now: Now,
        env: &mut Env,
    ) -> Option<Any<'_>> {
        let found = self.records.find_further(key)?;
        let head = Head::of(self.records.slot(found.handle));
        self.read((found, head), key, touch, now, env)
    }

    #[inline(always)]
    fn read(
        &mut self,
        (found, head): (Found, Head),
        key: Key<'_>,
        touch: bool,
        now: Now,
        env: &mut Env,
    ) -> Option<Any<'_>> {
        if head.has_expiry() && head.is_due(self.records.slot(found.handle), now.unix_ms()) {
            return self.left_of(key, now, env);
        }
        if touch {
            let slot = self.records.slot_mut(found.handle);
            record::put_stamp(slot, env.next_stamp(record::stamp(slot), now));
        }
        let slot = self.records.slot(found.handle);
        if head.kind() == INLINE {
            return Some(Any::String(Value::Small(head.value_part(slot))));
        }
        let value = self.records.value_of(head, slot);
        Some(value.shown_by(|| env.lattice.pick(key)))
    }

    /// The value of an expired key: what remains of it, if anything.
    #[cold]
    fn left_of(&mut self, key: Key<'_>, now: Now, env: &mut Env) -> Option<Any<'_>> {
        let found = self.live(key, now, env)?;
        let value = self.records.value(found.handle);
        Some(value.shown_by(|| env.lattice.pick(key)))
    }

    /// Adds a record for a missing key.
    pub(super) fn create(&mut self, key: Key<'_>, new: NewRecord<'_>) -> u32 {
        let expiry = new.expiry;
        let handle = self.records.add(key, new);
        self.census.add(key.bytes);
        if self.graves.len() > 0 {
            self.graves.take(key.bytes);
        }
        self.change_deadline(key.hash, handle, None, expiry);
        handle
    }

    /// Replaces a record's value, expiry and access stamp. A large value goes to the garbage list.
    #[inline(never)]
    pub(super) fn replace(
        &mut self,
        found: Found,
        key: Key<'_>,
        new: NewRecord<'_>,
        garbage: &mut GarbageList,
    ) {
        let slot = self.records.slot(found.handle);
        let head = Head::of(slot);
        self.change_deadline(key.hash, found.handle, head.expiry(slot), new.expiry);
        if let Some(outside) = self.records.replace((found, head), key, new) {
            garbage.throw(outside);
        }
    }

    /// Removes a record. A large value goes to the garbage list.
    pub(super) fn remove(&mut self, found: Found, hash: u32, garbage: &mut GarbageList) {
        if let Some(outside) = self.unlink(found, hash) {
            garbage.throw(outside);
        }
    }

    /// Unlinks a record; returns what it had outside, its key aside.
    pub(super) fn unlink(&mut self, found: Found, hash: u32) -> Option<Outside> {
        let slot = self.records.slot(found.handle);
        let head = Head::of(slot);
        self.change_deadline(hash, found.handle, head.expiry(slot), None);
        if self.census.is_needed() {
            self.census.remove(self.records.key(found.handle));
        }
        self.records.remove((found, head), hash)
    }

    pub(super) fn set_expiry(&mut self, found: Found, key: Key<'_>, expiry: Option<u64>) {
        let old = self.records.expiry(found.handle);
        self.change_deadline(key.hash, found.handle, old, expiry);
        self.records.put_expiry(found, key, expiry);
    }

    /// Updates deadlines and counts; the caller updates the record.
    #[inline]
    fn change_deadline(&mut self, hash: u32, handle: u32, old: Option<u64>, new: Option<u64>) {
        if old != new {
            self.move_deadline(hash, handle, old, new);
        }
    }

    fn move_deadline(&mut self, hash: u32, handle: u32, old: Option<u64>, new: Option<u64>) {
        let records = &self.records;
        let has_it = |at| {
            let same = |other| other != handle && records.expiry(other) == Some(at);
            records.find_where(hash, same).is_some()
        };
        self.deadlines.change(hash, old, new, has_it);
        if old.is_some() != new.is_some() && self.census.is_needed() {
            let key = self.records.key(handle);
            self.census.change_expiring(key, new.is_some());
        }
    }

    #[inline]
    pub(super) fn touch(&mut self, handle: u32, now: Now, env: &mut Env) {
        let slot = self.records.slot_mut(handle);
        let stamp = env.next_stamp(record::stamp(slot), now);
        record::put_stamp(slot, stamp);
    }

    /// See `Shard::scan`; omits keys for which `leaves_out` returns true. `f` also gets the hash.
    pub(super) fn scan(
        &mut self,
        range: Range,
        leaves_out: impl Fn(&Self, u32, &Env) -> bool,
        env: &mut Env,
        f: &mut dyn FnMut(u32, Item<'_>),
    ) -> Option<u32> {
        let mut entries = std::mem::take(&mut env.entries);
        let (cursor, now_ms) = (range.cursor, range.now_ms);
        let next = self.records.collect(cursor, range.count, &mut entries);
        for &(hash, handle) in &entries {
            if leaves_out(self, handle, env) {
                continue;
            }
            if self.is_due(handle, now_ms, env) {
                let key: Box<[u8]> = self.records.key(handle).into();
                self.expire_entry(hash, handle, env);
                let key = Key { bytes: &key, hash };
                if let Some(left) = self.live_at(key, now_ms, env) {
                    f(hash, self.records.item(left.handle));
                }
            } else {
                f(hash, self.records.item(handle));
            }
        }
        env.entries = entries;
        next
    }

    /// A random listed record. `None` if there is none; or few among many that are not listed.
    pub(super) fn random(
        &mut self,
        listing: Listing,
        now_ms: u64,
        rng: &mut Rng,
        env: &mut Env,
    ) -> Option<Item<'_>> {
        if !self.census.may_list(self.len(), listing) {
            return None;
        }
        let mut others = 0;
        loop {
            let (hash, handle) = self.records.random(rng)?;
            if self.is_unlisted(handle, listing, env) {
                others += 1;
                if others == MAX_DRAWS {
                    return None;
                }
                continue;
            }
            if !self.is_due(handle, now_ms, env) {
                return Some(self.records.item(handle));
            }
            // Due records come first in the order of expiry: once they are removed, few draws fail.
            self.expire_entry(hash, handle, env);
            self.expire(now_ms, &mut 16, env);
        }
    }

    /// Number of records that this worker counts, and not another worker or node, and of those that expire.
    pub(super) fn counted(&self, guests: &Guests) -> (usize, usize) {
        let elsewhere = self.census.elsewhere().plus(self.census.guests(guests));
        let others = elsewhere.plus(self.census.counted_by_others(guests));
        (
            self.len() - others.keys as usize,
            self.deadlines.len() - others.expiring as usize,
        )
    }

    /// Number of listed records.
    pub(super) fn listed(&self, listing: Listing, guests: &Guests) -> usize {
        self.census.listed(self.len(), listing, guests)
    }

    /// Whether another node decides on a record's removal.
    #[inline]
    pub(super) fn is_guest(&self, handle: u32, env: &Env) -> bool {
        env.guests.decide_on(&self.records, handle)
    }

    /// Whether a record is not in a list.
    pub(super) fn is_unlisted(&self, handle: u32, listing: Listing, env: &Env) -> bool {
        let key = self.records.key(handle);
        !self.census.lists(key, listing, &env.guests)
    }

    /// All present records and graves belong to the cut of a snapshot, up to whose horizon all nodes had received
    /// everything.
    pub(super) fn begin_walk(&mut self, horizon: u64) {
        self.cut = Cut {
            number: self.number,
            horizon,
        };
        self.records.begin_walk();
        self.graves.begin_walk();
    }

    /// Whether the walk of a snapshot is not finished.
    pub(super) fn is_walked(&self) -> bool {
        self.records.walk().is_some() || self.graves.walk().is_some()
    }

    pub(super) fn memory(&self) -> Memory {
        Memory {
            keys: self.len(),
            index_bytes: self.records.index_bytes(),
            arena_bytes: self.records.arena_bytes(),
            record_bytes: self.records.used_bytes(),
            big_bytes: self.records.beside.bytes(),
            expiry_bytes: self.deadlines.bytes(),
            graves: self.graves.len(),
            grave_bytes: self.graves.bytes(),
            held_bytes: 0,
        }
    }

    /// The charge for the memory limit; see `Shard::charged`.
    #[inline]
    pub(super) fn charged(&self) -> usize {
        if self.len() == 0 {
            return self.graves.bytes();
        }
        let outside = self.records.beside.bytes() + self.graves.bytes();
        let records = self.records.index_bytes() + self.records.used_bytes();
        records + outside + self.deadlines.bytes()
    }

    /// Memory of one record, with its entry in the order of expiry.
    pub(super) fn memory_of(&self, handle: u32) -> usize {
        let deadline = self.records.expiry(handle).map_or(0, |_| 12);
        self.records.memory_of(handle) + deadline
    }

    /// All keys that have records, and whether they expire.
    pub(super) fn keys(&self) -> impl Iterator<Item = (&[u8], bool)> {
        keys(&self.records)
    }

    /// Asserts every invariant of the database and of its parts.
    pub(super) fn check(&self, hash_of: impl Fn(&[u8]) -> u32) {
        let mut pairs = Vec::new();
        self.graves.check();
        self.records.check(hash_of, |hash, handle| {
            let key = self.records.key(handle);
            assert!(self.graves.tag_of(key).is_none(), "a record and a grave");
            pairs.extend(self.records.expiry(handle).map(|at| (at, hash)));
        });
        self.deadlines.check(pairs);
        self.census.check(self.keys());
    }
}

/// All keys of these records, and whether they expire.
pub(super) fn keys(records: &Records) -> impl Iterator<Item = (&[u8], bool)> {
    let handles = records.handles();
    handles.map(|handle| (records.key(handle), records.expiry(handle).is_some()))
}
