//! The records of a database: an index from hash to record, an arena with the records, and what is too large for them
//! ([`Beside`]). Here are finding and reading; `records/write.rs` adds, changes and removes records. Deadlines, counts
//! and observers are the callers'.
//!
//! Invariants:
//! 1. The index and the arena hold the same records.
//! 2. Each number in a record is in use in its slab, by that record alone.
//! 3. Records have the parity of new ones, except those that a walk of a snapshot has not yet reached.

#[cfg(test)]
mod tests;
mod write;

use super::arena::Arena;
use super::beside::Beside;
use super::classes;
use super::index::{Index, Position, Probe};
use super::record::{self, BIG, Head, INLINE, OBJECT, PACKED, PARITY, equal};
use super::segment::PLACES;
use super::types::{Any, Entry, Item, Key, Value};
use rufous_base::rng::Rng;
use rufous_datatype::object::{Object, Tag};
use std::hint::black_box;
use std::ops::Range;
pub(super) use write::NewRecord;

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Records {
    index: Index,
    arena: Arena,
    pub(super) beside: Beside,
    /// The parity of new records.
    parity: u8,
    /// The hash from which on records may have the other parity.
    walk: Option<u32>,
    /// Reused: the value of a record that is rewritten.
    scratch: Vec<u8>,
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

/// The slab number stored in a key or value part.
fn number(part: &[u8]) -> u32 {
    // invariant: every writer of a part writes four bytes
    let bytes = part.first_chunk().expect("such parts have four bytes");
    u32::from_le_bytes(*bytes)
}

/// The type and bytes of a packed value part.
fn tagged(part: &[u8]) -> (Tag, &[u8]) {
    // invariant: every writer of such a part begins it with a tag
    let (&tag, packed) = part.split_first().expect("such parts begin with a tag");
    // invariant: tags come from `Tag`
    let tag = Tag::from_byte(tag).expect("a tag stands for a type");
    (tag, packed)
}

/// Finding.
impl Records {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    #[inline(always)]
    pub(super) fn probe(&self, hash: u32) -> Probe {
        self.index.probe(hash)
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
        self.find_where(key.hash, |handle| {
            self.matching(handle, key.bytes).is_some()
        })
    }

    /// The record with this hash for which `is_it` returns true.
    #[inline]
    pub(super) fn find_where(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<Found> {
        let (position, handle) = self.index.find(hash, is_it)?;
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

    /// The handle of the key's record, if it has a packed value and does not expire, and the position of the value
    /// part in its slot.
    #[inline(always)]
    pub(super) fn plain(&self, key: Key<'_>) -> Option<(u32, Range<usize>)> {
        let probe = self.index.probe(key.hash);
        let at_home = match probe.handle {
            0 if !probe.further => return None,
            0 => None,
            handle => self.matching(handle, key.bytes),
        };
        let (handle, head) = match at_home {
            Some(head) => (probe.handle, head),
            None => {
                let handle = self.find_further(key)?.handle;
                (handle, Head::of(self.arena.get(handle)))
            }
        };
        let part = head.value_at()..head.value_at() + head.value_len();
        let is_plain = head.kind() == PACKED && !head.has_expiry();
        is_plain.then_some((handle, part))
    }

    /// What most probably is the handle of the record with this hash, or 0; see [`Records::warm`].
    #[inline]
    pub(super) fn candidate(&self, hash: u32) -> u32 {
        self.index.candidate(hash)
    }

    /// Prefetches a slot. The result has no meaning.
    #[inline]
    pub(super) fn warm(&self, handle: u32) -> u64 {
        self.arena.warm(handle)
    }

    pub(super) fn warm_lines(&self, handle: u32, lines: usize) -> u64 {
        self.arena.warm_lines(handle, lines)
    }

    /// Fills `out` with hash and handle of the next `count` records, as [`Index::collect`] does, whose slots are
    /// prefetched. Returns the hash to continue from.
    pub(super) fn collect(
        &self,
        cursor: u32,
        count: usize,
        out: &mut Vec<(u32, u32)>,
    ) -> Option<u32> {
        self.index.collect(cursor, count, out)
    }

    /// Prefetches the slots of these records.
    pub(super) fn warm_all(&self, entries: &[(u32, u32)]) {
        let warm = entries.iter().map(|&(_, handle)| self.arena.warm(handle));
        black_box(warm.sum::<u64>());
    }

    /// Hash and handle of a random record; all have the same probability.
    pub(super) fn random(&self, rng: &mut Rng) -> Option<(u32, u32)> {
        self.index.random(rng)
    }

    /// Draws at least `count` records, each with the same probability.
    pub(super) fn draw(&self, count: usize, rng: &mut Rng) -> Vec<(u32, u32)> {
        let mut entries = Vec::with_capacity(count + PLACES);
        match count {
            1 => self.index.random_some(1, rng, &mut entries),
            _ => self.index.random_buckets(count, rng, &mut entries),
        }
        // In a separate pass, so that the cache misses overlap.
        let stamps = entries.iter().map(|e| self.stamp(e.1));
        black_box(stamps.fold(0, |all, stamp| all ^ stamp));
        entries
    }

    /// All records in no particular order.
    pub(super) fn handles(&self) -> impl Iterator<Item = u32> + '_ {
        self.index.entries().map(|(_, handle)| handle)
    }
}

/// Reading.
impl Records {
    #[inline(always)]
    pub(super) fn slot(&self, handle: u32) -> &[u8] {
        self.arena.get(handle)
    }

    #[inline(always)]
    pub(super) fn slot_mut(&mut self, handle: u32) -> &mut [u8] {
        self.arena.get_mut(handle)
    }

    /// The slot of a handle that is a guess.
    #[inline(always)]
    pub(super) fn guessed(&self, handle: u32) -> Option<&[u8]> {
        self.arena.slot(handle)
    }

    #[inline(always)]
    pub(super) fn guessed_mut(&mut self, handle: u32) -> Option<&mut [u8]> {
        self.arena.slot_mut(handle)
    }

    fn key_of<'a>(&'a self, head: Head, slot: &'a [u8]) -> &'a [u8] {
        let part = head.key_part(slot);
        if head.has_long_key() {
            return self.beside.key(number(part));
        }
        part
    }

    pub(super) fn key(&self, handle: u32) -> &[u8] {
        let slot = self.arena.get(handle);
        self.key_of(Head::of(slot), slot)
    }

    #[inline]
    pub(super) fn expiry(&self, handle: u32) -> Option<u64> {
        let slot = self.arena.get(handle);
        Head::of(slot).expiry(slot)
    }

    /// The access stamp.
    #[inline]
    pub(super) fn stamp(&self, handle: u32) -> u32 {
        record::stamp(self.arena.get(handle))
    }

    #[inline]
    pub(super) fn value(&self, handle: u32) -> Any<'_> {
        let slot = self.arena.get(handle);
        self.value_of(Head::of(slot), slot)
    }

    #[inline]
    pub(super) fn value_of<'a>(&'a self, head: Head, slot: &'a [u8]) -> Any<'a> {
        let part = head.value_part(slot);
        match head.kind() {
            INLINE => Any::String(Value::Small(part)),
            BIG => Any::String(Value::Big(self.beside.big(number(part)))),
            OBJECT => Any::Object(self.beside.object(number(part))),
            _ => {
                let (tag, packed) = tagged(part);
                Any::Packed(tag, packed)
            }
        }
    }

    /// A value's type, unless it is a string, and whether it is packed.
    #[inline]
    pub(super) fn shape(&self, handle: u32) -> (Option<Tag>, bool) {
        let slot = self.arena.get(handle);
        let head = Head::of(slot);
        match head.kind() {
            PACKED => (Some(tagged(head.value_part(slot)).0), true),
            OBJECT => {
                let object = self.beside.object(number(head.value_part(slot)));
                (Some(object.tag()), false)
            }
            _ => (None, false),
        }
    }

    #[inline]
    pub(super) fn is_replicated(&self, handle: u32) -> bool {
        self.shape(handle).0.is_some_and(Tag::is_replicated)
    }

    /// The number of a record's object.
    #[inline]
    pub(super) fn object_number(&self, handle: u32) -> u32 {
        let slot = self.arena.get(handle);
        number(Head::of(slot).value_part(slot))
    }

    /// A packed value as an object of its own, whose bytes are put into `buffer`.
    pub(super) fn unpacked(&self, handle: u32, buffer: &mut Vec<u8>) -> Object {
        let slot = self.arena.get(handle);
        let (tag, bytes) = tagged(Head::of(slot).value_part(slot));
        let mut buffer = std::mem::take(buffer);
        buffer.clear();
        buffer.extend_from_slice(bytes);
        tag.unpack(buffer)
    }

    /// Length of a string. The caller has checked the type.
    pub(super) fn string_len(&self, handle: u32) -> usize {
        let string = self.value(handle).string();
        string.map_or(0, |value| value.bytes().len())
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
}

/// The walk of a snapshot.
impl Records {
    /// The records of an empty database that replaces this one.
    pub(super) fn of_nothing(&self) -> Self {
        Self {
            parity: self.parity,
            ..Self::default()
        }
    }

    /// From now on all present records are to be visited by a walk.
    pub(super) fn begin_walk(&mut self) {
        self.parity ^= PARITY;
        self.walk = (self.len() > 0).then_some(0);
    }

    /// The hash at which the walk continues, until it is at the end.
    pub(super) fn walk(&self) -> Option<u32> {
        self.walk
    }

    pub(super) fn set_walk(&mut self, next: Option<u32>) {
        self.walk = next;
    }

    /// Whether the walk has yet to visit a record.
    #[inline]
    pub(super) fn is_ahead(&self, handle: u32) -> bool {
        record::parity(self.arena.get(handle)) != self.parity
    }

    /// The record needs no visit of the walk any more.
    pub(super) fn set_visited(&mut self, handle: u32) {
        record::put_parity(self.arena.get_mut(handle), self.parity);
    }
}

/// Memory, and the invariants.
impl Records {
    pub(super) fn index_bytes(&self) -> usize {
        self.index.bytes()
    }

    pub(super) fn arena_bytes(&self) -> usize {
        self.arena.bytes()
    }

    /// Bytes of the arena in use.
    pub(super) fn used_bytes(&self) -> usize {
        self.arena.used_bytes()
    }

    /// Memory of one record: its slot, its word of the index, and what it keeps outside.
    pub(super) fn memory_of(&self, handle: u32) -> usize {
        let slot = self.arena.get(handle);
        let head = Head::of(slot);
        let long_key = head.has_long_key().then(|| self.key_of(head, slot));
        let key = long_key.map_or(0, Beside::bytes_of_key);
        let value = match self.value(handle) {
            Any::String(Value::Big(value)) => Beside::bytes_of_big(value),
            Any::Object(object) => Beside::bytes_of_object(object),
            Any::String(Value::Small(_)) | Any::Packed(..) => 0,
        };
        slot.len() + 8 + key + value
    }

    /// Asserts every invariant, and calls `f` with hash and handle of each record.
    pub(super) fn check(&self, hash_of: impl Fn(&[u8]) -> u32, mut f: impl FnMut(u32, u32)) {
        self.index.check();
        self.arena.check();
        self.beside.check();
        assert_eq!(self.index.len(), self.arena.records());
        let mut outside = [0; 3];
        for (hash, handle) in self.index.entries() {
            let slot = self.arena.get(handle);
            assert!(record::is_record(slot), "the index names a free slot");
            let may_be_ahead = self.walk.is_some_and(|cursor| hash >= cursor);
            assert!(may_be_ahead || !self.is_ahead(handle));
            let head = Head::of(slot);
            let key = self.key_of(head, slot);
            assert_eq!(hash_of(key), hash);
            assert_eq!(head.has_long_key(), key.len() > record::MAX_INLINE_KEY);
            outside[1] += usize::from(head.has_long_key());
            match self.value(handle) {
                Any::String(Value::Big(_)) => outside[0] += 1,
                Any::Object(object) => {
                    outside[2] += 1;
                    assert!(!object.is_empty(), "an empty collection is removed");
                }
                Any::Packed(tag, bytes) => assert!(tag.packed_len(bytes) > 0, "{tag:?} is empty"),
                Any::String(Value::Small(_)) => {}
            }
            let parts = (head.key_part(slot).len(), head.value_len());
            let size = record::size(parts.0, parts.1, head.has_expiry());
            let keeps_room = head.kind() == PACKED && tagged(head.value_part(slot)).0.keeps_room();
            let suits = classes::suits(slot.len(), size, keeps_room);
            assert!(suits, "{size} bytes in a slot of {}", slot.len());
            f(hash, handle);
        }
        assert_eq!(outside, self.beside.counts());
        let mut handles: Vec<u32> = self.arena.handles().collect();
        let mut named: Vec<u32> = self.handles().collect();
        handles.sort_unstable();
        named.sort_unstable();
        assert_eq!(handles, named);
    }
}
