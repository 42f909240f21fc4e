//! Extendible hashing over Arc'd parts, used twice: a page is a directory of segments, the root one of pages.
//!
//! A part at depth `d` holds the hashes that begin with the same `d` bits. A directory covers the hashes that begin
//! with the same `base` bits and looks at the `bits` bits that follow: `2^bits` slots, of which a part at depth `d`
//! has the `2^(base + bits - d)` that share its bits, one after the other. So parts in the order of their slots are
//! parts in the order of hashes.
//!
//! The parts themselves stand in a list of their own, once each, so that an `Arc` tells whether a copy of the whole
//! shares the part. Beside them stand their weights, the numbers of elements, to draw one at random by.

use std::ops::Range;
use std::sync::Arc;

pub(super) trait Part: Clone {
    fn depth(&self) -> u8;
}

#[derive(Clone, Debug)]
pub(super) struct Directory<T> {
    base: u8,
    bits: u8,
    slots: Vec<u32>,
    parts: Vec<Arc<T>>,
    weights: Vec<u32>,
}

impl<T: Part> Part for Directory<T> {
    fn depth(&self) -> u8 {
        self.base
    }
}

/// Looking.
impl<T: Part> Directory<T> {
    /// A directory of a single part, whose depth must be `base`.
    pub(super) fn new(base: u8, part: Arc<T>, weight: u32) -> Self {
        Self {
            base,
            bits: 0,
            slots: vec![0],
            parts: vec![part],
            weights: vec![weight],
        }
    }

    /// What the directory itself takes on the heap, without its parts.
    pub(super) fn own_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u32>()
            + self.parts.capacity() * size_of::<Arc<T>>()
            + self.weights.capacity() * size_of::<u32>()
    }

    pub(super) fn bits(&self) -> u8 {
        self.bits
    }

    pub(super) fn parts(&self) -> &[Arc<T>] {
        &self.parts
    }

    pub(super) fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// The index of the part that holds this hash.
    #[inline]
    pub(super) fn find(&self, hash: u64) -> usize {
        self.slots[self.slot(hash)] as usize
    }

    #[inline]
    fn slot(&self, hash: u64) -> usize {
        // Shifted in two steps, as none of the bits may be ours.
        ((hash << self.base) >> 1 >> (63 - self.bits)) as usize
    }

    pub(super) fn part_mut(&mut self, index: usize) -> &mut T {
        Arc::make_mut(&mut self.parts[index])
    }

    pub(super) fn weigh(&mut self, index: usize, change: i32) {
        self.weights[index] = self.weights[index].wrapping_add_signed(change);
    }

    pub(super) fn weight(&self) -> u32 {
        self.weights.iter().sum()
    }

    /// The part that holds the `nth` element, when elements are counted part by part, and its place there.
    pub(super) fn nth(&self, mut nth: u64) -> Option<(&T, u64)> {
        for (part, &weight) in self.parts.iter().zip(&self.weights) {
            if nth < u64::from(weight) {
                return Some((part, nth));
            }
            nth -= u64::from(weight);
        }
        None
    }

    /// The parts in the order of hashes, from the one that holds `hash` on.
    pub(super) fn from(&self, hash: u64) -> impl Iterator<Item = &T> + '_ {
        let mut slot = self.span(hash).start;
        std::iter::from_fn(move || {
            let part = &self.parts[*self.slots.get(slot)? as usize];
            slot += self.width(part);
            Some(&**part)
        })
    }

    fn width(&self, part: &T) -> usize {
        1 << (self.base + self.bits - part.depth())
    }

    /// The slots of the part that holds this hash.
    fn span(&self, hash: u64) -> Range<usize> {
        let slot = self.slot(hash);
        let width = self.width(&self.parts[self.slots[slot] as usize]);
        let start = slot & !(width - 1);
        start..start + width
    }

    /// The slots of the part whose hashes differ in the last bit from those of the part that holds this hash.
    fn buddy(&self, hash: u64) -> Option<Range<usize>> {
        let span = self.span(hash);
        let start = span.start ^ span.len();
        let part = &self.parts[*self.slots.get(start)? as usize];
        (self.width(part) == span.len()).then(|| start..start + span.len())
    }

    /// The part that holds this hash and the one it was split from, the lower one first.
    pub(super) fn twins(&self, hash: u64) -> Option<(usize, usize)> {
        let (one, other) = (self.span(hash), self.buddy(hash)?);
        let low = self.slots[one.start.min(other.start)];
        let high = self.slots[one.start.max(other.start)];
        Some((low as usize, high as usize))
    }
}

/// Growing and shrinking.
impl<T: Part> Directory<T> {
    /// Replaces the part that holds this hash by its halves and their weights.
    pub(super) fn split(&mut self, hash: u64, low: (T, u32), high: (T, u32)) {
        if self.span(hash).len() == 1 {
            self.slots = self.slots.iter().flat_map(|&part| [part, part]).collect();
            self.bits += 1;
        }
        let span = self.span(hash);
        let index = self.slots[span.start] as usize;
        let middle = span.start + span.len() / 2;
        self.slots[middle..span.end].fill(self.parts.len() as u32);
        self.parts[index] = Arc::new(low.0);
        self.weights[index] = low.1;
        if self.parts.len() == self.parts.capacity() {
            let more = self.parts.len() / 4 + 1;
            self.parts.reserve_exact(more);
            self.weights.reserve_exact(more);
        }
        self.parts.push(Arc::new(high.0));
        self.weights.push(high.1);
    }

    /// Replaces the [`Directory::twins`] of this hash by one part.
    pub(super) fn join(&mut self, hash: u64, joined: T, weight: u32) {
        let (Some((low, high)), Some(buddy)) = (self.twins(hash), self.buddy(hash)) else {
            return;
        };
        let span = self.span(hash);
        self.slots[span].fill(low as u32);
        self.slots[buddy].fill(low as u32);
        self.parts[low] = Arc::new(joined);
        self.weights[low] = weight;
        let last = self.parts.len() - 1;
        for slot in &mut self.slots {
            if *slot as usize == last {
                *slot = high as u32;
            }
        }
        self.parts.swap_remove(high);
        self.weights.swap_remove(high);
        if self.parts.len() * 2 < self.parts.capacity() {
            self.parts.shrink_to_fit();
            self.weights.shrink_to_fit();
        }
        self.fold();
    }

    /// Halves the slots while no part needs them all.
    fn fold(&mut self) {
        while self.bits > 0 && self.slots.chunks_exact(2).all(|pair| pair[0] == pair[1]) {
            self.slots = self.slots.iter().step_by(2).copied().collect();
            self.bits -= 1;
        }
    }

    /// Cuts the directory in two, by its first bit: no part may hold hashes of both halves.
    pub(super) fn halves(&self) -> (Self, Self) {
        let (low, high) = self.slots.split_at(self.slots.len() / 2);
        (self.half(low), self.half(high))
    }

    fn half(&self, slots: &[u32]) -> Self {
        let mut half = Self {
            base: self.base + 1,
            bits: self.bits - 1,
            slots: Vec::with_capacity(slots.len()),
            parts: Vec::new(),
            weights: Vec::new(),
        };
        let mut previous = None;
        for &slot in slots {
            if previous != Some(slot) {
                previous = Some(slot);
                half.parts.push(Arc::clone(&self.parts[slot as usize]));
                half.weights.push(self.weights[slot as usize]);
            }
            half.slots.push(half.parts.len() as u32 - 1);
        }
        half.parts.shrink_to_fit();
        half.weights.shrink_to_fit();
        half.fold();
        half
    }

    /// The reverse of [`Directory::halves`].
    pub(super) fn unite(low: &Self, high: &Self) -> Self {
        let bits = low.bits.max(high.bits);
        let mut whole = Self {
            base: low.base - 1,
            bits: bits + 1,
            slots: Vec::with_capacity(2 << bits),
            parts: [&low.parts[..], &high.parts[..]].concat(),
            weights: [&low.weights[..], &high.weights[..]].concat(),
        };
        for (half, first) in [(low, 0), (high, low.parts.len() as u32)] {
            let times = 1 << (bits - half.bits);
            for &slot in &half.slots {
                whole.slots.extend(std::iter::repeat_n(slot + first, times));
            }
        }
        whole
    }

    /// Asserts the invariants, of each part too, by `check(part, the hashes' common beginning) -> weight`.
    pub(super) fn check(&self, prefix: u64, mut check: impl FnMut(&T, u64) -> usize) -> usize {
        assert_eq!(self.slots.len(), 1 << self.bits);
        assert_eq!(self.parts.len(), self.weights.len());
        let (mut slot, mut seen, mut weight) = (0, 0, 0);
        while slot < self.slots.len() {
            let index = self.slots[slot] as usize;
            let part = &self.parts[index];
            assert!((self.base..=self.base + self.bits).contains(&part.depth()));
            let width = self.width(part);
            assert_eq!(slot % width, 0, "a part out of its place");
            assert!(
                self.slots[slot..slot + width]
                    .iter()
                    .all(|&s| s as usize == index)
            );
            let first = (slot as u64) << (63 - self.bits) << 1;
            let found = check(part, prefix | first >> self.base);
            assert_eq!(found, self.weights[index] as usize, "a wrong weight");
            slot += width;
            seen += 1;
            weight += found;
        }
        assert_eq!(seen, self.parts.len(), "parts without slots");
        weight
    }
}
