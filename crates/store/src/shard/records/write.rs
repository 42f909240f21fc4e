//! Adding, changing and removing records. A record is changed in place if its slot has the right size, and otherwise
//! rewritten in another slot.

use super::{Found, Records, number};
use crate::shard::beside::Outside;
use crate::shard::classes;
use crate::shard::placed::{New, fits};
use crate::shard::record::{
    self, BIG, Head, INLINE, LONG_KEY, MAX_INLINE_KEY, OBJECT, PACKED, Parts,
};
use crate::shard::types::Key;
use rufous_datatype::object::Tag;
use std::sync::Arc;

/// A record to be written, without its key.
pub(in crate::shard) struct NewRecord<'a> {
    pub(in crate::shard) value: New<'a>,
    pub(in crate::shard) expiry: Option<u64>,
    pub(in crate::shard) stamp: u32,
}

/// The key part of a record.
enum KeyPart<'a> {
    Key(&'a [u8]),
    /// The number of a long key.
    Number([u8; 4]),
}

impl<'a> KeyPart<'a> {
    /// That of a present record with this key.
    #[inline]
    fn of(head: Head, slot: &[u8], key: Key<'a>) -> Self {
        if head.has_long_key() {
            return KeyPart::Number(number(head.key_part(slot)).to_le_bytes());
        }
        KeyPart::Key(key.bytes)
    }

    /// Its flag and bytes.
    #[inline]
    fn parts(&self) -> (u8, &[u8]) {
        match self {
            KeyPart::Key(bytes) => (0, bytes),
            KeyPart::Number(bytes) => (LONG_KEY, bytes),
        }
    }
}

/// Kind and slab number of what a record keeps outside, its key aside.
fn outside(head: Head, slot: &[u8]) -> Option<(u8, u32)> {
    let kind = head.kind();
    let is_outside = kind == BIG || kind == OBJECT;
    is_outside.then(|| (kind, number(head.value_part(slot))))
}

impl Records {
    /// Adds a record for a missing key. Returns its handle.
    pub(in crate::shard) fn add(&mut self, key: Key<'_>, new: NewRecord<'_>) -> u32 {
        let key_part = if key.bytes.len() > MAX_INLINE_KEY {
            KeyPart::Number(self.beside.add_key(key.bytes).to_le_bytes())
        } else {
            KeyPart::Key(key.bytes)
        };
        let (flag, key_bytes) = key_part.parts();
        let value = (self.beside).place(key_bytes.len(), new.value, new.expiry);
        let (kind, tag, value) = value.parts();
        let parts = Parts {
            flags: flag | kind | self.parity,
            stamp: new.stamp,
            expiry: new.expiry,
            key: key_bytes,
            tag,
            value,
        };
        let handle = self.arena.alloc(parts.size());
        parts.write(self.arena.get_mut(handle));
        self.index.insert(key.hash, handle);
        handle
    }

    /// Replaces all of a record, which has this head, but its key. Returns the old value, if it lay outside of the record.
    pub(in crate::shard) fn replace(
        &mut self,
        (found, head): (Found, Head),
        key: Key<'_>,
        new: NewRecord<'_>,
    ) -> Option<Outside> {
        let slot = self.arena.get(found.handle);
        let key_part = KeyPart::of(head, slot, key);
        let old = outside(head, slot).map(|(kind, number)| self.beside.remove(kind, number));
        let (flag, key_bytes) = key_part.parts();
        let value = (self.beside).place(key_bytes.len(), new.value, new.expiry);
        let (kind, tag, value) = value.parts();
        self.rewrite(
            found,
            Parts {
                flags: flag | kind | self.parity,
                stamp: new.stamp,
                expiry: new.expiry,
                key: key_bytes,
                tag,
                value,
            },
        );
        old
    }

    /// Replaces the bytes of a packed record, in place if they fit.
    #[inline]
    pub(in crate::shard) fn replace_packed(
        &mut self,
        found: Found,
        key: Key<'_>,
        tag: Tag,
        packed: &[u8],
    ) {
        let slot = self.arena.get_mut(found.handle);
        let head = Head::of(slot);
        debug_assert_eq!(head.kind(), PACKED);
        let size = head.size_with(packed.len() + 1);
        if head.stays_with(packed.len() + 1) && classes::suits(slot.len(), size, tag.keeps_room()) {
            head.put_value_len(slot, packed.len() + 1);
            let start = head.value_at() + 1;
            slot[start..start + packed.len()].copy_from_slice(packed);
            return;
        }
        let key_part = KeyPart::of(head, slot, key);
        let (flag, key_bytes) = key_part.parts();
        let parts = Parts {
            flags: flag | PACKED | self.parity,
            stamp: record::stamp(slot),
            expiry: head.expiry(slot),
            key: key_bytes,
            tag: Some(tag as u8),
            value: packed,
        };
        let size = match tag.keeps_room() {
            true => classes::roomy(parts.size()),
            false => parts.size(),
        };
        self.rewrite_in(size, found, parts);
    }

    /// Rewrites the whole record, in another slot if its size requires that. Returns its handle.
    fn rewrite(&mut self, found: Found, parts: Parts<'_>) -> u32 {
        self.rewrite_in(parts.size(), found, parts)
    }

    /// Rewrites the whole record in a slot of `size`.
    fn rewrite_in(&mut self, size: usize, found: Found, parts: Parts<'_>) -> u32 {
        let mut handle = found.handle;
        if self.arena.get(handle).len() != classes::slot_size(size) {
            handle = self.arena.alloc(size);
            self.index.set_handle(found.position, handle);
            parts.write(self.arena.get_mut(handle));
            self.arena.free(found.handle);
        } else {
            parts.write(self.arena.get_mut(handle));
        }
        handle
    }

    /// Removes a record, which has this head. Returns its value, if that lay outside of the record.
    pub(in crate::shard) fn remove(
        &mut self,
        (found, head): (Found, Head),
        hash: u32,
    ) -> Option<Outside> {
        let slot = self.arena.get(found.handle);
        let long_key = head.has_long_key().then(|| number(head.key_part(slot)));
        let outside = outside(head, slot);
        if let Some(number) = long_key {
            self.beside.remove_key(number);
        }
        self.index.remove(found.position, hash);
        self.arena.free(found.handle);
        outside.map(|(kind, number)| self.beside.remove(kind, number))
    }

    /// The bytes of a string, to be changed in place.
    #[inline]
    pub(in crate::shard) fn string_mut(&mut self, handle: u32) -> &mut [u8] {
        let head = Head::of(self.arena.get(handle));
        if head.kind() == BIG {
            let number = number(head.value_part(self.arena.get(handle)));
            return self.beside.change_big(number, |_| ());
        }
        head.value_part_mut(self.arena.get_mut(handle))
    }

    /// Whether the value is a string as commands write them, and no replicated one.
    #[inline]
    pub(in crate::shard) fn is_string(&self, handle: u32) -> bool {
        let kind = Head::of(self.arena.get(handle)).kind();
        kind == INLINE || kind == BIG
    }

    /// Appends to a string. Returns the new length.
    pub(in crate::shard) fn append(&mut self, found: Found, key: Key<'_>, tail: &[u8]) -> usize {
        let slot = self.arena.get(found.handle);
        let head = Head::of(slot);
        if head.kind() == BIG {
            let number = number(head.value_part(slot));
            let change = |value: &mut Vec<u8>| value.extend_from_slice(tail);
            return self.beside.change_big(number, change).len();
        }
        let old = head.value_len();
        let handle = self.extend(found, key, old + tail.len());
        self.string_mut(handle)[old..].copy_from_slice(tail);
        old + tail.len()
    }

    /// Extends a string with zeros to `len`. Returns the handle.
    pub(in crate::shard) fn extend(&mut self, found: Found, key: Key<'_>, len: usize) -> u32 {
        let slot = self.arena.get_mut(found.handle);
        let head = Head::of(slot);
        if head.kind() == BIG {
            let number = number(head.value_part(slot));
            self.beside.change_big(number, |v| v.resize(len, 0));
            return found.handle;
        }
        if head.resize_in_place(slot, len).is_some() {
            return found.handle;
        }
        let expiry = head.expiry(slot);
        self.recompose(found, key, expiry, len)
    }

    /// Sets or removes the expiry.
    pub(in crate::shard) fn put_expiry(&mut self, found: Found, key: Key<'_>, expiry: Option<u64>) {
        let slot = self.arena.get_mut(found.handle);
        let head = Head::of(slot);
        match (head.has_expiry(), expiry) {
            (false, None) => {}
            (true, Some(at)) => head.put_expiry(slot, at),
            _ => {
                self.recompose(found, key, expiry, head.value_len());
            }
        }
    }

    /// Rewrites a record with another expiry, or with an inline value extended to `len`. Returns the handle.
    fn recompose(&mut self, found: Found, key: Key<'_>, expiry: Option<u64>, len: usize) -> u32 {
        let slot = self.arena.get(found.handle);
        let head = Head::of(slot);
        let key_part = KeyPart::of(head, slot, key);
        let (flag, key_bytes) = key_part.parts();
        let stamp = record::stamp(slot);
        let mut kind = head.kind();
        let mut value = std::mem::take(&mut self.scratch);
        value.clear();
        value.extend_from_slice(head.value_part(slot));
        if kind == INLINE && !fits(key_bytes.len(), len, expiry) {
            let mut big = Vec::with_capacity(len);
            big.extend_from_slice(&value);
            big.resize(len, 0);
            value.clear();
            let number = self.beside.add_big(Arc::new(big));
            value.extend_from_slice(&number.to_le_bytes());
            kind = BIG;
        } else if kind == INLINE {
            value.resize(len, 0);
        }
        let parts = Parts {
            flags: flag | kind | self.parity,
            stamp,
            expiry,
            key: key_bytes,
            tag: None,
            value: &value,
        };
        let handle = self.rewrite(found, parts);
        self.scratch = value;
        handle
    }

    /// Moves a few records so that pages of the arena become free; `hash_of` gives the hash of a key. Returns whether
    /// there may be more to do.
    pub(in crate::shard) fn compact(
        &mut self,
        hash_of: impl Fn(&[u8]) -> u32,
        budget: &mut usize,
        count: &mut u64,
    ) -> bool {
        let Self {
            index,
            arena,
            beside,
            ..
        } = self;
        arena.compact(budget, |slot, old, new| {
            let head = Head::of(slot);
            let part = head.key_part(slot);
            let key = if head.has_long_key() {
                beside.key(number(part))
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
