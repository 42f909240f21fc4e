//! The layout of a record in its slot.
//!
//! ```text
//! byte 0      flags: kind (bits 0-3, never 0 in a record), has expiry, key
//!             elsewhere, parity (see snapshot.rs)
//! bytes 1-3   access stamp, little endian: a time, or Redis's LFU pair
//! varint      bytes of the key part
//! varint      bytes of the value part
//! [8 bytes    expiry, Unix milliseconds, little endian; where flagged]
//! key part    the key, or the number of a long key
//! value part  the value, the number of a big value or of an object, or a
//!             type's tag and packed bytes
//! ```
//!
//! A varint has seven bits a byte, low bits first. A key of 8 bytes with a
//! value of 64 takes 78 bytes, and 86 with an expiry.

use std::ops::Range;

/// The value part is the value.
pub(super) const INLINE: u8 = 1;
/// The value part is a number in the slab of big values.
pub(super) const BIG: u8 = 2;
/// The value part is a type's tag and packed bytes.
pub(super) const PACKED: u8 = 3;
/// The value part is a number in the slab of objects.
pub(super) const OBJECT: u8 = 4;
const KIND: u8 = 0x0F;
const HAS_EXPIRY: u8 = 0x10;
/// The key part is a number in the slab of long keys.
pub(super) const LONG_KEY: u8 = 0x20;
/// Differs from the database's parity until a snapshot has written the record.
pub(super) const PARITY: u8 = 0x40;

/// Longer keys are kept outside of the record, so that a record with the shortest value still fits the largest slot.
pub(super) const MAX_INLINE_KEY: usize = 512;
/// The largest record, and the arena's largest slot. Values that would make a record larger are kept outside of it.
pub(super) const MAX_RECORD: usize = 4096;

/// Bits of an access stamp.
pub(super) const STAMP: u32 = 0xFF_FFFF;

/// The positions of a record's parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    flags: u8,
    /// The position of the value's length, for growth in place.
    value_varint: u32,
    key_at: u32,
    key_len: u32,
    value_len: u32,
}

impl Head {
    /// Reads the head of the record in `slot`.
    #[inline(always)]
    pub(super) fn of(slot: &[u8]) -> Self {
        // Every slot has eight bytes; they hold the whole head of nearly every record.
        if let Some(&first) = slot.first_chunk() {
            let word = u64::from_le_bytes(first);
            if is_compact(word) {
                // One byte of length, or two if the first byte says so.
                let low = (word >> 40) as u32 & 0x7F;
                let is_long = (word >> 47) as u32 & 1;
                let high = ((word >> 48) as u32 & 0x7F) << 7;
                return Self {
                    flags: word as u8,
                    value_varint: 5,
                    key_at: 6 + is_long + (u32::from(word as u8 & HAS_EXPIRY) >> 1),
                    key_len: (word >> 32) as u32 & 0x7F,
                    value_len: low | high & is_long.wrapping_neg(),
                };
            }
        }
        Self::with_long_parts(slot)
    }

    #[inline(never)]
    fn with_long_parts(slot: &[u8]) -> Self {
        let flags = slot[0];
        let (key_len, at) = get_varint(slot, 4);
        let value_varint = at as u32;
        let (value_len, at) = get_varint(slot, at);
        Self {
            flags,
            value_varint,
            key_at: at as u32 + (u32::from(flags & HAS_EXPIRY) >> 1),
            key_len,
            value_len,
        }
    }

    #[inline]
    pub(super) fn kind(self) -> u8 {
        self.flags & KIND
    }

    #[inline]
    pub(super) fn has_expiry(self) -> bool {
        self.flags & HAS_EXPIRY != 0
    }

    #[inline]
    pub(super) fn has_long_key(self) -> bool {
        self.flags & LONG_KEY != 0
    }

    #[inline]
    pub(super) fn key_part(self, slot: &[u8]) -> &[u8] {
        &slot[self.key_at as usize..][..self.key_len as usize]
    }

    #[inline]
    pub(super) fn value_len(self) -> usize {
        self.value_len as usize
    }

    #[inline]
    pub(super) fn value_part(self, slot: &[u8]) -> &[u8] {
        &slot[(self.key_at + self.key_len) as usize..][..self.value_len as usize]
    }

    #[inline]
    pub(super) fn value_part_mut(self, slot: &mut [u8]) -> &mut [u8] {
        &mut slot[(self.key_at + self.key_len) as usize..][..self.value_len as usize]
    }

    #[inline]
    pub(super) fn expiry(self, slot: &[u8]) -> Option<u64> {
        if !self.has_expiry() {
            return None;
        }
        slot[self.key_at as usize - 8..]
            .first_chunk()
            .map(|&bytes| u64::from_le_bytes(bytes))
    }

    /// Whether the record has expired.
    #[inline]
    pub(super) fn is_due(self, slot: &[u8], now_ms: u64) -> bool {
        self.expiry(slot).is_some_and(|at| at <= now_ms)
    }

    /// Overwrites the expiry of a record that has one.
    pub(super) fn put_expiry(self, slot: &mut [u8], unix_ms: u64) {
        let at = self.key_at as usize;
        slot[at - 8..at].copy_from_slice(&unix_ms.to_le_bytes());
    }

    /// The end of the longest value for which nothing has to move: the head
    /// keeps its size and the slot is large enough.
    #[inline]
    pub(super) fn room_end(self, slot: &[u8]) -> usize {
        let longest = if self.value_len < 0x80 { 0x7F } else { 0x3FFF };
        let longest = longest.max(self.value_len as usize);
        slot.len()
            .min((self.key_at + self.key_len) as usize + longest)
    }

    /// Whether the head keeps its size with a value of this length.
    #[inline]
    pub(super) fn stays_with(self, value_len: usize) -> bool {
        varint_len(value_len) == varint_len(self.value_len as usize)
    }

    /// Stores the length of a value that was changed in place. The head keeps its size.
    #[inline]
    pub(super) fn put_value_len(self, slot: &mut [u8], len: usize) {
        debug_assert!(self.stays_with(len));
        put_varint(slot, self.value_varint as usize, len);
    }

    /// Size of the record with a value of this length.
    #[inline]
    pub(super) fn size_with(self, value_len: usize) -> usize {
        size(self.key_len as usize, value_len, self.has_expiry())
    }

    /// The position of the value part.
    #[inline]
    pub(super) fn value_at(self) -> usize {
        (self.key_at + self.key_len) as usize
    }

    /// Changes the value's length if nothing has to move: the head keeps its size and the slot is large enough. New
    /// bytes are zero.
    pub(super) fn resize_in_place(self, slot: &mut [u8], len: usize) -> Option<Self> {
        let start = (self.key_at + self.key_len) as usize;
        let old = self.value_len as usize;
        if start + len > slot.len() || varint_len(len) != varint_len(old) {
            return None;
        }
        put_varint(slot, self.value_varint as usize, len);
        if len > old {
            slot[start + old..start + len].fill(0);
        }
        Some(Self {
            value_len: len as u32,
            ..self
        })
    }
}

/// The head of a record with a packed value whose key is in the record, which does not expire, and whose lengths take
/// few bytes: compared with another head in one step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Compact {
    /// The first eight bytes, without the access stamp.
    start: u64,
    key_at: u16,
    value_at: u16,
    end: u16,
}

const ALL_BUT_STAMP: u64 = !((STAMP as u64) << 8);

impl Compact {
    #[inline(always)]
    pub(super) fn of(slot: &[u8]) -> Option<Self> {
        let start = u64::from_le_bytes(*slot.first_chunk()?);
        let plain = start as u8 & (KIND | HAS_EXPIRY | LONG_KEY) == PACKED;
        if !plain || !is_compact(start) {
            return None;
        }
        let head = Head::of(slot);
        Some(Self {
            start: start & ALL_BUT_STAMP,
            key_at: head.key_at as u16,
            value_at: head.value_at() as u16,
            end: (head.value_at() + head.value_len()) as u16,
        })
    }

    /// The positions of key and value part, if the record in the slot has this head. Accepts any slot's bytes.
    #[inline(always)]
    pub(super) fn parts(&self, slot: &[u8]) -> Option<(Range<usize>, Range<usize>)> {
        let start = u64::from_le_bytes(*slot.first_chunk()?);
        let [key, value, end] = [self.key_at, self.value_at, self.end].map(usize::from);
        (start & ALL_BUT_STAMP == self.start).then_some((key..value, value..end))
    }
}

/// Whether the key's length takes one byte and the value's length one or two.
#[inline(always)]
fn is_compact(start: u64) -> bool {
    start & 0x0080_0080_0000_0000 == 0 || start & 0x8080_0000_0000 == 0
}

/// All parts of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts<'a> {
    /// Kind and parity, and [`LONG_KEY`] where it applies.
    pub(super) flags: u8,
    pub(super) stamp: u32,
    pub(super) expiry: Option<u64>,
    pub(super) key: &'a [u8],
    /// Written before the value, in its part.
    pub(super) tag: Option<u8>,
    pub(super) value: &'a [u8],
}

impl Parts<'_> {
    pub(super) fn size(&self) -> usize {
        size(self.key.len(), self.value_len(), self.expiry.is_some())
    }

    fn value_len(&self) -> usize {
        usize::from(self.tag.is_some()) + self.value.len()
    }

    /// Writes the record to the start of `slot`.
    #[inline]
    pub(super) fn write(&self, slot: &mut [u8]) {
        let expires = if self.expiry.is_some() { HAS_EXPIRY } else { 0 };
        let head = u32::from(self.flags | expires) | self.stamp << 8;
        slot[..4].copy_from_slice(&head.to_le_bytes());
        let at = put_varint(slot, 4, self.key.len());
        let mut at = put_varint(slot, at, self.value_len());
        if let Some(unix_ms) = self.expiry {
            slot[at..at + 8].copy_from_slice(&unix_ms.to_le_bytes());
            at += 8;
        }
        slot[at..at + self.key.len()].copy_from_slice(self.key);
        at += self.key.len();
        if let Some(tag) = self.tag {
            slot[at] = tag;
            at += 1;
        }
        slot[at..at + self.value.len()].copy_from_slice(self.value);
    }
}

/// Size of a record with parts of these lengths.
#[inline]
pub(super) fn size(key: usize, value: usize, expires: bool) -> usize {
    4 + varint_len(key) + varint_len(value) + if expires { 8 } else { 0 } + key + value
}

#[inline]
pub(super) fn stamp(slot: &[u8]) -> u32 {
    first_word(slot) >> 8
}

/// Writes the stamp only if it differs: a record that is only read stays clean in the cache.
#[inline]
pub(super) fn put_stamp(slot: &mut [u8], value: u32) {
    let word = first_word(slot);
    if word >> 8 != value {
        let word = word & 0xFF | value << 8;
        slot[..4].copy_from_slice(&word.to_le_bytes());
    }
}

#[inline]
fn first_word(slot: &[u8]) -> u32 {
    slot.first_chunk()
        .map_or(0, |&bytes| u32::from_le_bytes(bytes))
}

#[inline]
pub(super) fn parity(slot: &[u8]) -> u8 {
    slot[0] & PARITY
}

pub(super) fn put_parity(slot: &mut [u8], parity: u8) {
    slot[0] = slot[0] & !PARITY | parity;
}

/// Whether the slot holds a record.
pub(super) fn is_record(slot: &[u8]) -> bool {
    slot[0] != 0
}

#[inline]
fn varint_len(n: usize) -> usize {
    match n {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        _ => 3,
    }
}

#[inline]
fn get_varint(slot: &[u8], at: usize) -> (u32, usize) {
    let first = u32::from(slot[at]);
    if first < 0x80 {
        return (first, at + 1);
    }
    let second = u32::from(slot[at + 1]);
    if second < 0x80 {
        return (first & 0x7F | second << 7, at + 2);
    }
    let third = u32::from(slot[at + 2]);
    (first & 0x7F | (second & 0x7F) << 7 | third << 14, at + 3)
}

/// Returns the position after it.
#[inline]
fn put_varint(slot: &mut [u8], at: usize, n: usize) -> usize {
    let len = varint_len(n);
    let mut rest = n;
    for byte in &mut slot[at..at + len - 1] {
        *byte = rest as u8 | 0x80;
        rest >>= 7;
    }
    slot[at + len - 1] = rest as u8;
    at + len
}

/// Equality of short strings without a call: the two words overlap in the middle.
#[inline(always)]
pub(crate) fn equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match (a.first_chunk::<8>(), b.first_chunk::<8>()) {
        (Some(x), Some(y)) if a.len() <= 16 => x == y && a.last_chunk::<8>() == b.last_chunk::<8>(),
        _ => a == b,
    }
}

const _: () = {
    let longest = 4 + 3 + 3 + 8 + MAX_INLINE_KEY + 4;
    assert!(longest <= MAX_RECORD, "a key kept inside always fits");
    let packed = 4 + 3 + 3 + 8 + MAX_INLINE_KEY + 1 + rufous_datatype::algebra::MAX_PACKED;
    assert!(packed <= MAX_RECORD, "so does a packed value beside it");
    assert!(
        MAX_RECORD < 1 << 21,
        "lengths inside fit three bytes of varint"
    );
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let long = vec![7u8; 4000];
        for key_len in [0, 1, 8, 127, 128, MAX_INLINE_KEY] {
            for value_len in [0, 1, 64, 127, 128, 300, 3000] {
                for expiry in [None, Some(u64::MAX)] {
                    let parts = Parts {
                        flags: INLINE,
                        stamp: 0x00AB_CDEF,
                        expiry,
                        key: &long[..key_len],
                        tag: None,
                        value: &long[..value_len],
                    };
                    let mut slot = vec![0xEE; parts.size() + 3];
                    parts.write(&mut slot);
                    let head = Head::of(&slot);
                    assert_eq!(head.key_part(&slot), parts.key);
                    assert_eq!(head.value_part(&slot), parts.value);
                    assert_eq!(head.expiry(&slot), expiry);
                    assert_eq!(stamp(&slot), parts.stamp);
                    assert_eq!(head.kind(), INLINE);
                    assert_eq!(slot[parts.size()..], [0xEE; 3]);
                }
            }
        }
        assert_eq!(size(8, 64, false), 78);
        assert_eq!(size(8, 64, true), 86);
    }

    #[test]
    fn equality_looks_at_every_byte() {
        for len in [0, 1, 7, 8, 9, 15, 16, 17, 40] {
            let a = vec![1u8; len];
            assert!(equal(&a, &a.clone()));
            assert!(!equal(&a, &vec![1u8; len + 1]));
            for at in 0..len {
                let mut b = a.clone();
                b[at] = 2;
                assert!(!equal(&a, &b), "{len} bytes, differing at {at}");
            }
        }
    }

    #[test]
    fn growth_in_place_keeps_to_its_slot() {
        let parts = Parts {
            flags: INLINE,
            stamp: 0,
            expiry: None,
            key: b"key",
            tag: None,
            value: &[9; 100],
        };
        let mut slot = vec![0xEE; 256];
        parts.write(&mut slot);
        let head = Head::of(&slot);
        assert!(
            head.resize_in_place(&mut slot, 128).is_none(),
            "longer head"
        );
        let grown = head.resize_in_place(&mut slot, 127).expect("fits");
        assert_eq!(grown.value_part(&slot)[..100], [9; 100]);
        assert_eq!(grown.value_part(&slot)[100..], [0; 27]);
        let mut tight = slot[..120].to_vec();
        assert!(head.resize_in_place(&mut tight, 127).is_none(), "no room");
    }
}
