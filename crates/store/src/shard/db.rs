//! One numbered database: index, records, keys and values too large for a record, and the order of expiry. Reading,
//! removing, expiring and walking; writing is in `write.rs`, the account of memory in `account.rs`.
//!
//! Invariants:
//! 1. The index and the arena hold the same records.
//! 2. Each number in a record is in use in its slab, by that record alone.
//! 3. Records have the database's parity, except those that a walk of a snapshot has not yet
//!    reached.
//! 4. A key that has a record has no grave.
//! 5. `expiry` has exactly the (time, hash) pairs of the records that expire.

use super::Env;
use super::arena::Arena;
use super::by_slot::BySlot;
use super::elsewhere::Elsewhere;
use super::expiry::Expiry;
use super::graves::Graves;
use super::index::{Index, Position, Probe};
use super::record::{self, BIG, Head, INLINE, OBJECT, equal};
use super::slab::Slab;
use super::types::{Any, Entry, Item, Key, Value};
use rufous_base::Now;
use rufous_base::rng::Rng;
use rufous_datatype::object::{Object, Tag};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Draws of keys that others answer for, before a random key is given up.
const MAX_DRAWS: u32 = 256;

#[derive(Debug, Default)]
pub(super) struct Db {
    /// The number by which it is selected.
    pub(super) number: u8,
    /// The parity of its records, except those that a snapshot still has to write.
    pub(super) parity: u8,
    /// Its number at the last cut.
    pub(super) cut: u8,
    /// All nodes had received everything up to this time of a stamp at the last cut.
    pub(super) cut_horizon: u64,
    /// The hash from which on records may have the other parity.
    pub(super) walk: Option<u32>,
    pub(super) index: Index,
    pub(super) arena: Arena,
    pub(super) bigs: Slab<Arc<Vec<u8>>>,
    pub(super) objects: Slab<Object>,
    /// Numbers of the objects with deferred work.
    pub(super) unswept: BTreeSet<u32>,
    pub(super) long_keys: Slab<Box<[u8]>>,
    pub(super) expiry: Expiry,
    /// Graves of replicated values that show nothing.
    pub(super) graves: Graves,
    /// Number of records that expire, and the sum of their times.
    pub(super) expiring: usize,
    pub(super) expiry_sum: u128,
    /// By how many milliseconds the wall clock is ahead of the time from which replicated keys expire.
    pub(super) ahead_ms: u64,
    pub(super) elsewhere: Elsewhere,
    pub(super) by_slot: BySlot,
    /// Bytes owned by the items of the slabs.
    pub(super) outside: usize,
}

/// A record that was found. Valid until an entry is added or removed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) position: Position,
    pub(super) handle: u32,
}

impl Probe {
    #[inline(always)]
    pub(super) fn found(self) -> Found {
        Found {
            position: self.position,
            handle: self.handle,
        }
    }
}

/// The value of a removed record, if it lay outside of the record.
#[derive(Debug)]
pub(super) enum Outside {
    Big(Arc<Vec<u8>>),
    Object(Object),
}

/// The slab number stored in a key or value part.
pub(super) fn number(part: &[u8]) -> u32 {
    // invariant: every writer of a part writes four bytes
    let bytes = part.first_chunk().expect("such parts have four bytes");
    u32::from_le_bytes(*bytes)
}

/// The type and bytes of a packed value part.
pub(super) fn packed(part: &[u8]) -> (Tag, &[u8]) {
    // invariant: every writer of such a part begins it with a tag
    let (&tag, packed) = part.split_first().expect("such parts begin with a tag");
    // invariant: tags come from `Tag`
    let tag = Tag::from_byte(tag).expect("a tag stands for a type");
    (tag, packed)
}

/// Kind and slab number of what a record keeps outside, its key aside.
pub(super) fn outside(head: Head, slot: &[u8]) -> Option<(u8, u32)> {
    let kind = head.kind();
    let is_outside = kind == BIG || kind == OBJECT;
    is_outside.then(|| (kind, number(head.value_part(slot))))
}

/// Memory of a big value: its buffer, and the reference count before it.
pub(super) fn big_bytes(value: &Arc<Vec<u8>>) -> usize {
    value.capacity() + size_of::<Vec<u8>>() + 16
}

impl Db {
    pub(super) fn new(number: u8, parity: u8) -> Self {
        Self {
            number,
            parity,
            ..Self::default()
        }
    }

    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether the database is empty, graves included.
    pub(super) fn is_void(&self) -> bool {
        self.index.len() == 0 && self.graves.len() == 0
    }

    pub(super) fn expiring(&self) -> usize {
        self.expiring
    }

    /// Mean time to live of the keys that expire, in milliseconds.
    pub(super) fn avg_ttl(&self, now_ms: u64) -> u64 {
        if self.expiring == 0 {
            return 0;
        }
        let mean = (self.expiry_sum / self.expiring as u128) as u64;
        mean.saturating_sub(now_ms)
    }

    #[inline(always)]
    pub(super) fn find(&self, key: Key<'_>) -> Option<Found> {
        let probe = self.index.probe(key.hash);
        if probe.handle != 0 && self.matching(probe.handle, key.bytes).is_some() {
            return Some(probe.found());
        }
        if probe.handle == 0 && !probe.further {
            return None;
        }
        self.find_further(key)
    }

    #[inline(never)]
    pub(super) fn find_further(&self, key: Key<'_>) -> Option<Found> {
        let has_key = |handle| self.matching(handle, key.bytes).is_some();
        let (position, handle) = self.index.find(key.hash, has_key)?;
        Some(Found { position, handle })
    }

    /// The record's head, if its key is `bytes`.
    #[inline(always)]
    pub(super) fn matching(&self, handle: u32, bytes: &[u8]) -> Option<Head> {
        let slot = self.arena.get(handle);
        let head = Head::of(slot);
        let same = if head.has_long_key() {
            self.key_of(head, slot) == bytes
        } else {
            equal(head.key_part(slot), bytes)
        };
        same.then_some(head)
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
        let probe = self.index.probe(key.hash);
        if probe.handle != 0
            && let Some(head) = self.matching(probe.handle, key.bytes)
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
        let found = self.find_further(key)?;
        let head = Head::of(self.arena.get(found.handle));
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
        if head.has_expiry() && head.is_due(self.arena.get(found.handle), now.unix_ms()) {
            return self.left_of(key, now, env);
        }
        if touch {
            let slot = self.arena.get_mut(found.handle);
            record::put_stamp(slot, env.next_stamp(record::stamp(slot), now));
        }
        let slot = self.arena.get(found.handle);
        if head.kind() == INLINE {
            return Some(Any::String(Value::Small(head.value_part(slot))));
        }
        Some(self.value_of(head, slot).shown_by(|| env.lattice.pick(key)))
    }

    /// The value of an expired key: what remains of it, if anything.
    #[cold]
    fn left_of(&mut self, key: Key<'_>, now: Now, env: &mut Env) -> Option<Any<'_>> {
        let found = self.live(key, now, env)?;
        Some(self.value(found.handle).shown_by(|| env.lattice.pick(key)))
    }

    /// Whether a record has expired by this reading of the wall clock.
    #[inline]
    pub(super) fn is_due(&self, handle: u32, now_ms: u64) -> bool {
        let slot = self.arena.get(handle);
        Head::of(slot).is_due(slot, now_ms)
            && (self.ahead_ms == 0 || self.is_due_yet(handle, now_ms))
    }

    /// The same on a wall clock that has jumped ahead.
    #[cold]
    fn is_due_yet(&self, handle: u32, now_ms: u64) -> bool {
        let slot = self.arena.get(handle);
        let now_ms = now_ms.saturating_sub(self.ahead_ms);
        !self.is_replicated(handle) || Head::of(slot).is_due(slot, now_ms)
    }

    #[inline]
    pub(super) fn expiry_of(&self, handle: u32) -> Option<u64> {
        let slot = self.arena.get(handle);
        Head::of(slot).expiry(slot)
    }

    pub(super) fn key_of<'a>(&'a self, head: Head, slot: &'a [u8]) -> &'a [u8] {
        let part = head.key_part(slot);
        if head.has_long_key() {
            return self.long_keys.get(number(part));
        }
        part
    }

    #[inline]
    pub(super) fn value(&self, handle: u32) -> Any<'_> {
        let slot = self.arena.get(handle);
        self.value_of(Head::of(slot), slot)
    }

    #[inline]
    fn value_of<'a>(&'a self, head: Head, slot: &'a [u8]) -> Any<'a> {
        let part = head.value_part(slot);
        match head.kind() {
            INLINE => Any::String(Value::Small(part)),
            BIG => Any::String(Value::Big(self.bigs.get(number(part)))),
            OBJECT => Any::Object(self.objects.get(number(part))),
            _ => {
                let (tag, packed) = packed(part);
                Any::Packed(tag, packed)
            }
        }
    }

    pub(super) fn item(&self, handle: u32) -> Item<'_> {
        let slot = self.arena.get(handle);
        let head = Head::of(slot);
        Item {
            key: self.key_of(head, slot),
            value: self.value(handle),
            expire_at: head.expiry(slot),
            access: record::stamp(slot),
        }
    }

    pub(super) fn entry(&self, handle: u32) -> Entry {
        let item = self.item(handle);
        Entry {
            value: item.value.to_owned(),
            expire_at: item.expire_at,
            access: item.access,
        }
    }

    /// Removes a record. A large value goes to the garbage list.
    pub(super) fn remove(&mut self, found: Found, hash: u32, env: &mut Env) {
        if let Some(outside) = self.unlink(found, hash) {
            env.garbage.throw(outside);
        }
    }

    /// Unlinks a record; returns what it had outside, its key aside.
    pub(super) fn unlink(&mut self, found: Found, hash: u32) -> Option<Outside> {
        let slot = self.arena.get(found.handle);
        let head = Head::of(slot);
        let long_key = head.has_long_key().then(|| number(head.key_part(slot)));
        let outside = outside(head, slot);
        let old = head.expiry(slot);
        self.change_expiry(hash, found.handle, old, None);
        self.leave(found.handle);
        if let Some(number) = long_key {
            self.outside -= self.long_keys.remove(number).len();
        }
        self.index.remove(found.position, hash);
        self.arena.free(found.handle);
        outside.map(|(kind, number)| self.remove_outside(kind, number))
    }

    pub(super) fn remove_outside(&mut self, kind: u8, number: u32) -> Outside {
        if kind == OBJECT {
            let object = self.objects.remove(number);
            self.unswept.remove(&number);
            self.outside -= object.heap_bytes();
            return Outside::Object(object);
        }
        let value = self.bigs.remove(number);
        self.outside -= big_bytes(&value);
        Outside::Big(value)
    }

    /// Updates the order of expiry; the caller updates the record.
    pub(super) fn change_expiry(
        &mut self,
        hash: u32,
        handle: u32,
        old: Option<u64>,
        new: Option<u64>,
    ) {
        if old == new {
            return;
        }
        if let Some(unix_ms) = old {
            self.expiring -= 1;
            self.expiry_sum -= u128::from(unix_ms);
            // Another key may have the same hash and time, and needs the pair.
            let same = |other| other != handle && self.expiry_of(other) == old;
            if self.index.find(hash, same).is_none() {
                self.expiry.remove(unix_ms, hash);
            }
        }
        if let Some(unix_ms) = new {
            self.expiring += 1;
            self.expiry_sum += u128::from(unix_ms);
            self.expiry.insert(unix_ms, hash);
        }
        self.note_expiring(handle, old.is_some(), new.is_some());
    }

    /// See `Shard::scan`; omits keys for which `leaves_out` returns true.
    pub(super) fn scan(
        &mut self,
        (cursor, count): (u32, usize),
        now_ms: u64,
        leaves_out: fn(&Self, u32, &Env) -> bool,
        env: &mut Env,
        f: &mut dyn FnMut(Item<'_>),
    ) -> Option<u32> {
        let mut entries = std::mem::take(&mut env.entries);
        let next = self.index.collect(cursor, count, &mut entries);
        for &(hash, handle) in &entries {
            if leaves_out(self, handle, env) {
                continue;
            }
            if self.is_due(handle, now_ms) {
                let key: Box<[u8]> = self.item(handle).key.into();
                self.expire_entry(hash, handle, env);
                let key = Key { bytes: &key, hash };
                if let Some(left) = self.live_at(key, now_ms, env) {
                    f(self.item(left.handle));
                }
            } else {
                f(self.item(handle));
            }
        }
        env.entries = entries;
        next
    }

    pub(super) fn random(&mut self, now_ms: u64, rng: &mut Rng, env: &mut Env) -> Option<Item<'_>> {
        let mut guests = 0;
        loop {
            let (hash, handle) = self.index.random(rng)?;
            if self.is_guest(handle, env) {
                // There may be no other keys.
                guests += 1;
                if guests == MAX_DRAWS {
                    return None;
                }
                continue;
            }
            if !self.is_due(handle, now_ms) {
                return Some(self.item(handle));
            }
            // Due records come first in the order of expiry: once they are removed, few draws fail.
            self.expire_entry(hash, handle, env);
            self.expire(now_ms, &mut 16, env);
        }
    }

    pub(super) fn compact(
        &mut self,
        hash_of: impl Fn(&[u8]) -> u32,
        budget: &mut usize,
        count: &mut u64,
    ) -> bool {
        let Self {
            index,
            arena,
            long_keys,
            ..
        } = self;
        arena.compact(budget, |slot, old, new| {
            let head = Head::of(slot);
            let part = head.key_part(slot);
            let key = if head.has_long_key() {
                long_keys.get(number(part))
            } else {
                part
            };
            let (at, _) = index
                .find(hash_of(key), |handle| handle == old)
                // invariant: compaction moves live records, and each has its word
                .expect("each record is in the index");
            index.set_handle(at, new);
            *count += 1;
        })
    }
}
