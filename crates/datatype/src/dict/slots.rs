//! The slots of a segment: a sorted array with gaps, searched from where an entry ought to be.
//!
//! An entry is a tag (16 bits of the element's hash) and the element's offset in the heap. Invariants:
//! - entries stand in the order of their tags (those of equal tags in any order);
//! - between an entry and its home, `tag * capacity / 2^16`, no slot is empty.
//!
//! So a search walks one run of full slots, at most, and growth needs no look at the elements. That the order is
//! that of hashes makes splits, joins and SCAN walks along the array. Entries may stand on either side of their
//! home: whoever comes makes room towards the nearer gap.

use super::segment::MAX_LEN;

/// No entry's offset has these low bits: see `heap.rs`.
pub(super) const NO_OFFSET: usize = 0xFFFF;

/// The greatest offset for which slots need not be wide.
pub(super) const MAX_NARROW: usize = NO_OFFSET - 1;
const EMPTY: u32 = u32::MAX;

/// Slots for fewer entries than this are not worth a smaller array.
const LEAST: usize = 8;

/// Slots for a segment of [`MAX_LEN`] elements, not crowded.
const FULL: usize = MAX_LEN * 8 / 7 + 1;

/// A little less than what is left in the smaller half of a full segment.
const HALF: usize = MAX_LEN * 7 / 16;

const _: () = assert!(HALF * 3 >= FULL, "neither is it sparse");

#[derive(Clone, Debug, Default)]
pub(super) struct Slots {
    /// Tag in the high half, the offset's low bits in the low half. When `wide`, as many words again, which hold
    /// the offsets' high bits.
    words: Box<[u32]>,
    len: u32,
    wide: bool,
}

impl Slots {
    /// Entries in the order of their tags, with space for `capacity` of them.
    pub(super) fn from_sorted(entries: &[(u16, usize)], capacity: usize, wide: bool) -> Self {
        debug_assert!(entries.len() <= capacity);
        let words = if wide { 2 * capacity } else { capacity };
        let mut slots = Self {
            words: vec![EMPTY; words].into_boxed_slice(),
            len: entries.len() as u32,
            wide,
        };
        let mut next = 0;
        for (i, &(tag, offset)) in entries.iter().enumerate() {
            // As near behind its home as its predecessors allow, and before it where the array would end too soon.
            let last = capacity - (entries.len() - i);
            let slot = home(tag, capacity).max(next).min(last);
            slots.set(slot, tag, offset);
            next = slot + 1;
        }
        slots
    }

    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) fn capacity(&self) -> usize {
        if self.wide {
            self.words.len() / 2
        } else {
            self.words.len()
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.len() * size_of::<u32>()
    }

    pub(super) fn is_wide(&self) -> bool {
        self.wide
    }

    #[inline]
    pub(super) fn is_empty_at(&self, slot: usize) -> bool {
        is_empty(self.words[slot])
    }

    #[inline]
    pub(super) fn tag(&self, slot: usize) -> u16 {
        (self.words[slot] >> 16) as u16
    }

    #[inline]
    pub(super) fn offset(&self, slot: usize) -> usize {
        let low = (self.words[slot] & 0xFFFF) as usize;
        if self.wide {
            low | (self.words[self.capacity() + slot] as usize) << 16
        } else {
            low
        }
    }

    pub(super) fn set(&mut self, slot: usize, tag: u16, offset: usize) {
        debug_assert!(offset & NO_OFFSET != NO_OFFSET);
        self.words[slot] = u32::from(tag) << 16 | (offset & 0xFFFF) as u32;
        if self.wide {
            let high = self.capacity() + slot;
            self.words[high] = (offset >> 16) as u32;
        } else {
            debug_assert!(offset <= 0xFFFF);
        }
    }

    /// The slot of the entry with this tag whose offset satisfies `is`, or else where an entry of the tag would
    /// go: all before it have smaller or equal tags, it and all after it are greater or empty.
    #[inline]
    pub(super) fn find(&self, tag: u16, mut is: impl FnMut(usize) -> bool) -> Result<usize, usize> {
        let capacity = self.capacity();
        if capacity == 0 {
            return Err(0);
        }
        let words = &self.words[..capacity];
        let least = u32::from(tag) << 16;
        let mut slot = home(tag, capacity);
        while slot > 0 && words[slot] >= least && !is_empty(words[slot]) {
            let before = words[slot - 1];
            if before < least || is_empty(before) {
                break;
            }
            slot -= 1;
        }
        while let Some(&word) = words.get(slot) {
            let found = (word >> 16) as u16;
            if is_empty(word) || found > tag {
                break;
            }
            if found == tag && is(self.offset(slot)) {
                return Ok(slot);
            }
            slot += 1;
        }
        Err(slot)
    }

    /// The first slot from which on all entries' tags are at least this.
    pub(super) fn lower_bound(&self, tag: u16) -> usize {
        let capacity = self.capacity();
        if capacity == 0 {
            return 0;
        }
        let mut slot = home(tag, capacity);
        // Smaller ones may stand behind the home only in its own run, greater ones before it likewise.
        while slot > 0 && !self.is_empty_at(slot - 1) && self.tag(slot - 1) >= tag {
            slot -= 1;
        }
        while slot < capacity && !self.is_empty_at(slot) && self.tag(slot) < tag {
            slot += 1;
        }
        slot
    }

    /// Whether one more entry would crowd the array.
    pub(super) fn is_crowded(&self) -> bool {
        (self.len() + 1) * 8 > self.capacity() * 7
    }

    pub(super) fn is_sparse(&self) -> bool {
        self.capacity() > LEAST && self.len() * 3 < self.capacity()
    }

    pub(super) fn grow(&mut self) {
        self.resize((self.capacity() * 5).div_ceil(4).max(LEAST));
    }

    pub(super) fn shrink(&mut self) {
        self.resize(roomy(self.len()));
    }

    fn resize(&mut self, capacity: usize) {
        let entries: Vec<(u16, usize)> = self.iter().map(|(_, tag, at)| (tag, at)).collect();
        *self = Self::from_sorted(&entries, capacity, self.wide);
    }

    /// Lets offsets have more than 16 bits, or no longer. Entries stay where they are.
    pub(super) fn set_wide(&mut self, wide: bool) {
        if wide == self.wide {
            return;
        }
        let capacity = self.capacity();
        let mut words = self.words.to_vec();
        words.truncate(capacity);
        if wide {
            words.resize(2 * capacity, 0);
        }
        self.words = words.into_boxed_slice();
        self.wide = wide;
    }

    /// Puts an entry where [`Slots::find`] said. There must be an empty slot.
    pub(super) fn insert(&mut self, at: usize, tag: u16, offset: usize) {
        let slot = self.make_room(at);
        self.set(slot, tag, offset);
        self.len += 1;
    }

    /// Empties slot `at` or the one before it by moving what lies between it and the nearer gap.
    fn make_room(&mut self, at: usize) -> usize {
        let capacity = self.capacity();
        let mut distance = 0;
        loop {
            let right = at + distance;
            if right < capacity && self.is_empty_at(right) {
                self.shift(at..right, at + 1);
                return at;
            }
            let left = at.checked_sub(distance + 1);
            if let Some(left) = left.filter(|&left| self.is_empty_at(left)) {
                self.shift(left + 1..at, left);
                return at - 1;
            }
            debug_assert!(right < capacity || left.is_some(), "no empty slot");
            distance += 1;
        }
    }

    fn shift(&mut self, from: std::ops::Range<usize>, to: usize) {
        let capacity = self.capacity();
        self.words.copy_within(from.clone(), to);
        if self.wide {
            self.words
                .copy_within(from.start + capacity..from.end + capacity, to + capacity);
        }
    }

    /// Removes an entry; those that stand beyond it, seen from their homes, come nearer.
    pub(super) fn remove(&mut self, slot: usize) {
        let capacity = self.capacity();
        let mut end = slot + 1;
        while end < capacity && !self.is_empty_at(end) && home(self.tag(end), capacity) < end {
            end += 1;
        }
        let mut gap = end - 1;
        self.shift(slot + 1..end, slot);
        if gap == slot {
            let mut start = slot;
            while start > 0
                && !self.is_empty_at(start - 1)
                && home(self.tag(start - 1), capacity) >= start
            {
                start -= 1;
            }
            self.shift(start..slot, start + 1);
            gap = start;
        }
        self.words[gap] = EMPTY;
        self.len -= 1;
    }

    /// Slot, tag and offset of each entry, in the order of tags.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, u16, usize)> + '_ {
        self.iter_from(0)
    }

    pub(super) fn iter_from(&self, slot: usize) -> impl Iterator<Item = (usize, u16, usize)> + '_ {
        (slot..self.capacity())
            .filter(|&slot| !self.is_empty_at(slot))
            .map(|slot| (slot, self.tag(slot), self.offset(slot)))
    }

    /// The least and the greatest tag.
    pub(super) fn ends(&self) -> Option<(u16, u16)> {
        let mut full = (0..self.capacity()).filter(|&slot| !self.is_empty_at(slot));
        let first = full.next()?;
        let last = full.next_back().unwrap_or(first);
        Some((self.tag(first), self.tag(last)))
    }

    /// Asserts the invariants.
    pub(super) fn check(&self) {
        let capacity = self.capacity();
        assert_eq!(self.iter().count(), self.len());
        let mut previous = 0;
        for (slot, tag, _) in self.iter() {
            assert!(previous <= tag, "tags out of order");
            previous = tag;
            let home = home(tag, capacity);
            let between = home.min(slot)..home.max(slot);
            assert!(between.into_iter().all(|slot| !self.is_empty_at(slot)));
            assert!(!self.is_empty_at(home));
        }
    }
}

/// How many slots `len` entries are given when the array is reallocated. Halves of a full segment get at once what
/// a full one needs: all arrays of large tables have one size, so that a freed array serves another segment.
pub(super) fn roomy(len: usize) -> usize {
    if (HALF..=MAX_LEN).contains(&len) {
        return FULL;
    }
    (len * 4 / 3 + 1).max(LEAST)
}

#[inline]
fn is_empty(word: u32) -> bool {
    word & 0xFFFF == NO_OFFSET as u32
}

#[inline]
fn home(tag: u16, capacity: usize) -> usize {
    ((u64::from(tag) * capacity as u64) >> 16) as usize
}
