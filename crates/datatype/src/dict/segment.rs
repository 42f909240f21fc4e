//! A segment: the elements whose hashes begin with the same `depth` bits.
//!
//! Their bytes are packed in a [`Heap`], in the order in which they came; [`Slots`] finds them by the 16 bits of hash
//! that follow the segment's own, the tag. What replacements and removals leave behind is garbage, at most about a
//! quarter of the heap. Elements too large to be copied about lie outside, shared by copies of the segment.

use super::directory::Part;
use super::element::{self, STUB_BYTES, Stored};
use super::hash::{Hashing, MAX_DEPTH, tag_of};
use super::heap::Heap;
use super::slots::{MAX_NARROW, Slots, roomy};
use std::sync::Arc;

/// A segment splits rather than hold more elements than this, or more bytes of them than [`MAX_BYTES`]: copying it
/// takes a few microseconds.
pub(super) const MAX_LEN: usize = 512;
const MAX_BYTES: usize = 40 << 10;

/// Garbage below this is not worth the work of removing it.
const LEAST_GARBAGE: usize = 64;

/// An allocation's share in an `Arc`: its two counts.
pub(super) const ARC_BYTES: usize = 2 * size_of::<usize>();

#[cfg(test)]
thread_local! {
    /// How many elements were given other places, one by one.
    pub(super) static MOVED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[derive(Clone, Debug, Default)]
struct Outside {
    elements: Vec<Option<Arc<[u8]>>>,
    /// What the elements take.
    bytes: usize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Segment {
    slots: Slots,
    heap: Heap,
    outside: Option<Box<Outside>>,
    /// Bytes in the heap that no slot leads to.
    garbage: usize,
    depth: u8,
}

impl Part for Segment {
    fn depth(&self) -> u8 {
        self.depth
    }
}

/// Reading.
impl Segment {
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn slots(&self) -> &Slots {
        &self.slots
    }

    /// What the segment takes on the heap of the process, itself included.
    pub(super) fn bytes(&self) -> usize {
        let outside = self.outside.as_ref().map_or(0, |outside| {
            size_of::<Outside>()
                + outside.elements.capacity() * size_of::<Option<Arc<[u8]>>>()
                + outside.bytes
        });
        ARC_BYTES + size_of::<Self>() + self.slots.bytes() + self.heap.bytes() + outside
    }

    #[inline]
    pub(super) fn find(&self, tag: u16, key: &[u8]) -> Result<usize, usize> {
        self.slots
            .find(tag, |offset| self.element_at(offset).0 == key)
    }

    /// Key and value.
    #[inline]
    pub(super) fn element(&self, slot: usize) -> (&[u8], &[u8]) {
        self.element_at(self.slots.offset(slot))
    }

    #[inline]
    fn element_at(&self, offset: usize) -> (&[u8], &[u8]) {
        let element = match element::stored(self.heap.at(offset)) {
            Stored::Inside(element) => element,
            Stored::Outside(index) => self.outside(index),
        };
        let parts = element::parts(element);
        (&element[parts.key], &element[parts.value])
    }

    fn outside(&self, index: usize) -> &Arc<[u8]> {
        let outside = self.outside.as_ref();
        let element = outside.and_then(|outside| outside.elements[index].as_ref());
        // invariant: stubs in use lead to elements, which `check` asserts
        element.expect("an element outside")
    }

    /// Elements in the order of their tags.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> + '_ {
        self.slots
            .iter()
            .map(|(_, _, offset)| self.element_at(offset))
    }

    fn live(&self) -> usize {
        self.heap.len() - self.garbage
    }
}

/// Writing.
impl Segment {
    /// Puts an element where [`Segment::find`] said; answers whether it is new.
    pub(super) fn put(
        &mut self,
        at: Result<usize, usize>,
        tag: u16,
        key: &[u8],
        value: &[u8],
    ) -> bool {
        match at {
            Ok(slot) => self.replace(slot, tag, key, value),
            Err(mut slot) => {
                if self.slots.is_crowded() {
                    self.slots.grow();
                    // Entries have moved; one of this key there is not.
                    slot = self.slots.find(tag, |_| false).unwrap_or_else(|slot| slot);
                }
                let offset = self.store(key, value);
                self.slots.insert(slot, tag, offset);
            }
        }
        at.is_err()
    }

    fn replace(&mut self, slot: usize, tag: u16, key: &[u8], value: &[u8]) {
        if let Stored::Inside(_) = element::stored(self.heap.at(self.slots.offset(slot)))
            && self.element(slot).1.len() == value.len()
        {
            self.value_mut(slot).copy_from_slice(value);
            return;
        }
        self.forget(slot);
        let offset = self.store(key, value);
        self.slots.set(slot, tag, offset);
        self.tidy();
    }

    pub(super) fn value_mut(&mut self, slot: usize) -> &mut [u8] {
        let offset = self.slots.offset(slot);
        let element = match element::stored(self.heap.at(offset)) {
            Stored::Inside(element) => {
                let len = element.len();
                self.heap.bytes_mut(offset, len)
            }
            Stored::Outside(index) => {
                let outside = self.outside.as_mut();
                let element = outside.and_then(|outside| outside.elements[index].as_mut());
                // invariant: stubs in use lead to elements, which `check` asserts
                Arc::make_mut(element.expect("an element outside"))
            }
        };
        let parts = element::parts(element);
        &mut element[parts.value]
    }

    pub(super) fn remove(&mut self, slot: usize) {
        self.forget(slot);
        self.slots.remove(slot);
        self.tidy();
        if self.slots.is_sparse() {
            self.slots.shrink();
        }
    }

    /// Counts an element as garbage. Its bytes stay readable until the next [`Segment::compact`], which must not
    /// run before its slot is removed or points elsewhere, unless the element is to be stored again.
    fn forget(&mut self, slot: usize) {
        match element::stored(self.heap.at(self.slots.offset(slot))) {
            Stored::Inside(element) => self.garbage += element.len(),
            Stored::Outside(index) => {
                self.garbage += STUB_BYTES;
                self.drop_outside(index);
            }
        }
    }

    fn drop_outside(&mut self, index: usize) {
        let Some(outside) = self.outside.as_mut() else {
            return;
        };
        if let Some(element) = outside.elements[index].take() {
            outside.bytes -= ARC_BYTES + element.len();
        }
        if outside.bytes == 0 {
            self.outside = None;
        }
    }

    /// Appends an element to the heap.
    fn store(&mut self, key: &[u8], value: &[u8]) -> usize {
        let size = element::size(key, value);
        let offset = if size > element::OUTSIDE_ABOVE {
            let index = self.keep_outside(element::outside(key, value));
            let (offset, room) = self.heap.add(STUB_BYTES);
            element::write_stub(room, index);
            offset
        } else {
            let (offset, room) = self.heap.add(size);
            element::write(room, key, value);
            offset
        };
        if offset > MAX_NARROW {
            self.slots.set_wide(true);
        }
        offset
    }

    fn keep_outside(&mut self, element: Arc<[u8]>) -> usize {
        let outside = self.outside.get_or_insert_default();
        outside.bytes += ARC_BYTES + element.len();
        if outside.elements.len() == outside.elements.capacity()
            && let Some(hole) = outside.elements.iter().position(Option::is_none)
        {
            outside.elements[hole] = Some(element);
            return hole;
        }
        let more = outside.elements.len() / 4 + 1;
        if outside.elements.len() == outside.elements.capacity() {
            outside.elements.reserve_exact(more);
        }
        outside.elements.push(Some(element));
        outside.elements.len() - 1
    }

    fn tidy(&mut self) {
        let many = self.garbage > LEAST_GARBAGE && self.garbage * 4 > self.heap.len();
        if many || self.len() == 0 {
            self.compact();
        }
    }

    /// Rewrites the heap without its garbage, in the order of the slots.
    fn compact(&mut self) {
        let mut to = Builder::new(self.depth, self.len(), self.live());
        for (_, tag, offset) in self.slots.iter() {
            to.add(tag, self, offset);
        }
        // Slots keep their places, so that a caller may still use one.
        let entries = std::mem::take(&mut to.entries);
        let wide = to.wide;
        let taken: Vec<usize> = self.slots.iter().map(|(slot, ..)| slot).collect();
        self.slots.set_wide(wide || self.slots.is_wide());
        for (slot, (tag, offset)) in taken.into_iter().zip(entries) {
            self.slots.set(slot, tag, offset);
        }
        self.slots.set_wide(wide);
        self.heap = to.segment.heap;
        self.outside = to.segment.outside;
        self.garbage = 0;
    }
}

/// Splitting and joining.
impl Segment {
    /// Whether putting this element should wait for a split.
    pub(super) fn overflows(&self, at: Result<usize, usize>, key: &[u8], value: &[u8]) -> bool {
        let size = element::heap_size(element::size(key, value));
        let more = self.live() + size > MAX_BYTES;
        match at {
            Ok(slot) => more && self.element(slot).1.len() != value.len(),
            Err(_) => more || self.len() >= MAX_LEN,
        }
    }

    pub(super) fn empty(depth: u8) -> Self {
        Self {
            depth,
            ..Self::default()
        }
    }

    /// How many bits all tags, and this one, have in common. None when they are equal: so may the hashes be, and
    /// the segment grows rather than split; also when it is as deep as may be.
    pub(super) fn shared_bits(&self, tag: u16) -> Option<u8> {
        let (first, last) = self.slots.ends()?;
        let different = first ^ last | first ^ tag;
        (self.depth < MAX_DEPTH && different != 0).then(|| {
            let shared = different.leading_zeros() as u8;
            shared.min(MAX_DEPTH - self.depth)
        })
    }

    /// Makes the segment deeper by as many bits as all its tags begin with. The elements' bytes stay in their places.
    pub(super) fn narrow(&mut self, bits: u8, hashing: &Hashing) {
        self.depth += bits;
        let tagged = self.slots.iter().map(|(.., offset)| {
            let hash = hashing.hash(self.element_at(offset).0);
            (tag_of(hash, self.depth), offset)
        });
        let mut entries: Vec<(u16, usize)> = tagged.collect();
        // Only those of equal tags can have been out of order.
        entries.sort_by_key(|&(tag, _)| tag);
        #[cfg(test)]
        MOVED.set(MOVED.get() + entries.len());
        self.slots = Slots::from_sorted(&entries, self.slots.capacity(), self.slots.is_wide());
    }

    pub(super) fn split(&self, hashing: &Hashing) -> (Self, Self) {
        let middle = self.slots.lower_bound(0x8000);
        let depth = self.depth + 1;
        let half = |range: std::ops::Range<usize>| {
            let mut entries: Vec<(u16, usize)> = self
                .slots
                .iter_from(range.start)
                .take_while(|&(slot, ..)| slot < range.end)
                .map(|(.., offset)| {
                    let hash = hashing.hash(self.element_at(offset).0);
                    (tag_of(hash, depth), offset)
                })
                .collect();
            // Only those of equal tags can have been out of order.
            entries.sort_by_key(|&(tag, _)| tag);
            let bytes = entries.iter().map(|&(_, offset)| self.heap_size(offset));
            let mut to = Builder::new(depth, entries.len(), bytes.sum());
            for (tag, offset) in entries {
                to.add(tag, self, offset);
            }
            to.finish()
        };
        (half(0..middle), half(middle..self.slots.capacity()))
    }

    fn heap_size(&self, offset: usize) -> usize {
        match element::stored(self.heap.at(offset)) {
            Stored::Inside(element) => element.len(),
            Stored::Outside(_) => STUB_BYTES,
        }
    }

    /// Whether so little is left that it might be joined with its neighbour.
    pub(super) fn is_light(&self) -> bool {
        self.depth > 0 && self.len() <= MAX_LEN / 4 && self.live() <= MAX_BYTES / 4
    }

    pub(super) fn fits_with(&self, other: &Self) -> bool {
        self.len() + other.len() <= MAX_LEN / 2 && self.live() + other.live() <= MAX_BYTES / 2
    }

    /// The reverse of a split.
    pub(super) fn join(low: &Self, high: &Self) -> Self {
        let len = low.len() + high.len();
        let mut to = Builder::new(low.depth - 1, len, low.live() + high.live());
        for (_, tag, offset) in low.slots.iter() {
            to.add(tag >> 1, low, offset);
        }
        for (_, tag, offset) in high.slots.iter() {
            to.add(tag >> 1 | 0x8000, high, offset);
        }
        to.finish()
    }

    /// Asserts the invariants.
    pub(super) fn check(&self, prefix: u64, hashing: &Hashing) {
        self.slots.check();
        let (mut live, mut outside_bytes) = (0, 0);
        for (_, tag, offset) in self.slots.iter() {
            let hash = hashing.hash(self.element_at(offset).0);
            assert_eq!(tag, tag_of(hash, self.depth), "another key's tag");
            let depth = u32::from(self.depth);
            let ours = |hash: u64| hash.checked_shr(64 - depth).unwrap_or(0);
            assert_eq!(ours(hash), ours(prefix), "an element of another segment");
            live += self.heap_size(offset);
            if let Stored::Outside(index) = element::stored(self.heap.at(offset)) {
                outside_bytes += ARC_BYTES + self.outside(index).len();
            }
        }
        assert_eq!(live, self.live());
        let kept = self.outside.as_ref().map_or(0, |outside| outside.bytes);
        assert_eq!(outside_bytes, kept, "lost elements outside");
        assert!(self.garbage <= LEAST_GARBAGE || self.garbage * 4 <= self.heap.len() + 8);
    }
}

/// A segment that is being rewritten.
struct Builder {
    segment: Segment,
    entries: Vec<(u16, usize)>,
    /// Whether an offset needs more than 16 bits.
    wide: bool,
}

impl Builder {
    fn new(depth: u8, len: usize, bytes: usize) -> Self {
        Self {
            segment: Segment {
                heap: Heap::with_room(bytes),
                depth,
                ..Segment::default()
            },
            entries: Vec::with_capacity(len),
            wide: false,
        }
    }

    fn add(&mut self, tag: u16, from: &Segment, offset: usize) {
        #[cfg(test)]
        MOVED.set(MOVED.get() + 1);
        let to = &mut self.segment;
        let offset = match element::stored(from.heap.at(offset)) {
            Stored::Inside(element) => {
                let (offset, room) = to.heap.add(element.len());
                room.extend_from_slice(element);
                offset
            }
            Stored::Outside(index) => {
                let index = to.keep_outside(Arc::clone(from.outside(index)));
                let (offset, room) = to.heap.add(STUB_BYTES);
                element::write_stub(room, index);
                offset
            }
        };
        self.wide |= offset > MAX_NARROW;
        self.entries.push((tag, offset));
    }

    fn finish(mut self) -> Segment {
        let capacity = roomy(self.entries.len());
        self.segment.slots = Slots::from_sorted(&self.entries, capacity, self.wide);
        self.segment
    }
}
