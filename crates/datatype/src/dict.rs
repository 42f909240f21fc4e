//! A hash table from byte strings to byte strings that carries large collections.
//!
//! [`Dict`] carries hashes as they are, sets with empty values, and the scores of sorted sets. It is extendible
//! hashing: segments of up to some 512 elements, found by the top bits of a seeded hash, split when they are full
//! and join when they are nearly empty. No operation's work grows with the number of elements, but for [`Dict::iter`].
//!
//! - **Copies.** A clone shares every segment, and costs microseconds for ten million elements; writes to either
//!   copy afterwards the segment that they touch. Thus a command may freeze a collection and walk it later.
//! - **Order.** Elements stand in the order of their hashes, which growth and shrink never change: see
//!   [`Dict::scan`].
//! - **Beside.** A table may keep a few bytes beside each value, of which readers see nothing: see [`Dict::beside`].
//! - **Memory.** An element takes its bytes, two bytes of lengths while both are below 128, about six bytes of
//!   a slot, and two of what lies unused. [`Dict::bytes`] is exact, and nearly what the process takes: what
//!   segments allocate has the same few sizes in all of them.
//!
//! Map, in reading order: `hash` (what the bits of a hash are for), `element` (bytes of one element), `heap`, `slots`
//! and `segment` (some hundred elements), `directory` (from hash to segment), `walk` (reading all or any).

#[cfg(test)]
mod beside_tests;
mod directory;
mod element;
mod hash;
mod heap;
mod segment;
mod slots;
#[cfg(test)]
mod tests;
mod walk;

use directory::{Directory, Part};
use hash::{Hashing, tag_of};
use segment::{ARC_BYTES, Segment};
use std::sync::Arc;

/// A page looks at up to this many bits of a hash: it has up to 512 segments, which a write to a copy of the table
/// must share one by one.
const PAGE_BITS: u8 = 9;

/// Pages of up to this many segments may be united.
const SMALL_PAGE: usize = 64;

/// The root has at most this many slots for each page. Hashes that are spread evenly need two or three; when they
/// are not, segments grow instead.
const ROOT_SLOTS_PER_PAGE: usize = 16;

/// Values that are no longer are put together with what lies beside them without an allocation.
const FEW_BYTES: usize = 128;

/// How many pages are sampled to estimate the memory that a copy does not share.
const SAMPLED_PAGES: usize = 8;

type Page = Directory<Segment>;

/// See the module's description. Elements may have any length; keys and values may be empty.
#[derive(Clone, Debug)]
pub struct Dict {
    hashing: Hashing,
    root: Directory<Page>,
    len: usize,
    /// What pages and segments take on the heap.
    parts_bytes: usize,
    /// How many bytes at the end of each value are returned only on request.
    beside: usize,
}

/// Where an element is, or would be.
struct Position {
    page: usize,
    segment: usize,
    tag: u16,
    slot: Result<usize, usize>,
}

/// Reading.
impl Dict {
    /// Users must not be able to guess the seed: they could choose keys of equal hashes.
    pub fn new(seed: u64) -> Self {
        let segment = Segment::default();
        let segment_bytes = segment.bytes();
        let page = Page::new(0, Arc::new(segment), 0);
        let parts_bytes = segment_bytes + page_bytes(&page);
        Self {
            hashing: Hashing::new(seed),
            root: Directory::new(0, Arc::new(page), 0),
            len: 0,
            parts_bytes,
            beside: 0,
        }
    }

    /// The same elements in a table that has `beside` bytes beside each value, all zero.
    pub fn widened(&self, beside: usize) -> Self {
        let mut wide = Self {
            hashing: self.hashing.clone(),
            beside,
            ..Self::new(0)
        };
        for (key, value) in self.iter() {
            wide.insert(key, value);
        }
        wide
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What the table takes on the heap, by capacity. Copies that share segments count each the whole.
    pub fn bytes(&self) -> usize {
        self.parts_bytes + self.root.own_bytes()
    }

    /// Of [`Dict::bytes`], what no copy shares: what dropping this one gives back. Where it is much, it is
    /// estimated from some pages that lie evenly apart.
    pub fn own_bytes(&self) -> usize {
        let pages = self.root.parts().iter().filter(|page| is_own(page));
        let count = pages.clone().count();
        let apart = count.div_ceil(SAMPLED_PAGES).max(1);
        let seen = count.div_ceil(apart).max(1);
        let bytes = pages.step_by(apart).map(|page| {
            let segments = page.parts().iter().filter(|segment| is_own(segment));
            page_bytes(page) + segments.map(|segment| segment.bytes()).sum::<usize>()
        });
        self.root.own_bytes() + bytes.sum::<usize>() * count / seen
    }

    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        Some(self.get_beside(key)?.0)
    }

    /// The value, and what lies beside it.
    #[inline]
    pub fn get_beside(&self, key: &[u8]) -> Option<(&[u8], &[u8])> {
        let hash = self.hashing.hash(key);
        let page = &self.root.parts()[self.root.find(hash)];
        let segment = &page.parts()[page.find(hash)];
        let slot = segment.find(tag_of(hash, segment.depth()), key).ok()?;
        Some(self.parted(segment.element(slot).1))
    }

    /// How many bytes lie beside each value.
    pub fn beside(&self) -> usize {
        self.beside
    }

    /// What is kept as one value: the value, and what lies beside it.
    #[inline]
    fn parted<'a>(&self, kept: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        kept.split_at(kept.len().saturating_sub(self.beside))
    }

    #[inline]
    fn shown<'a>(&self, (key, kept): (&'a [u8], &'a [u8])) -> (&'a [u8], &'a [u8]) {
        (key, self.parted(kept).0)
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        self.get(key).is_some()
    }

    #[inline]
    fn find(&self, hash: u64, key: &[u8]) -> Position {
        let page = self.root.find(hash);
        let segment = self.root.parts()[page].find(hash);
        let held = self.segment_at(page, segment);
        let tag = tag_of(hash, held.depth());
        Position {
            page,
            segment,
            tag,
            slot: held.find(tag, key),
        }
    }

    fn segment_at(&self, page: usize, segment: usize) -> &Segment {
        &self.root.parts()[page].parts()[segment]
    }
}

/// Writing.
impl Dict {
    /// Puts a value, in place of the old one if there is one; answers whether the key is new. What lies beside it
    /// is zeros then.
    pub fn insert(&mut self, key: &[u8], value: &[u8]) -> bool {
        if self.beside > 0 {
            return self.insert_beside(key, value, &[]);
        }
        self.put(key, value)
    }

    /// Likewise, with the bytes beside it: [`Dict::beside`] gives their number; zeros by default.
    pub fn insert_beside(&mut self, key: &[u8], value: &[u8], beside: &[u8]) -> bool {
        let len = value.len() + self.beside;
        let (mut few, mut many) = ([0; FEW_BYTES], Vec::new());
        let kept = match few.get_mut(..len) {
            Some(kept) => kept,
            None => {
                many.resize(len, 0);
                &mut many[..]
            }
        };
        let (to, rest) = kept.split_at_mut(value.len());
        to.copy_from_slice(value);
        rest.iter_mut()
            .zip(beside)
            .for_each(|(to, byte)| *to = *byte);
        self.put(key, kept)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> bool {
        let hash = self.hashing.hash(key);
        loop {
            let place = self.find(hash, key);
            let segment = self.segment_at(place.page, place.segment);
            if segment.overflows(place.slot, key, value) && self.split(hash) {
                continue;
            }
            return self.change(&place, |segment| {
                segment.put(place.slot, place.tag, key, value)
            });
        }
    }

    /// Lets `change` write over the value, which keeps its length; answers whether there is one.
    pub fn overwrite(&mut self, key: &[u8], change: impl FnOnce(&mut [u8])) -> bool {
        let place = self.find(self.hashing.hash(key), key);
        let Ok(slot) = place.slot else {
            return false;
        };
        let beside = self.beside;
        self.change(&place, |segment| {
            let kept = segment.value_mut(slot);
            let len = kept.len().saturating_sub(beside);
            change(&mut kept[..len]);
        });
        true
    }

    /// Sets the bytes beside a value, as many as [`Dict::beside`] gives; returns whether there is one.
    pub fn set_beside(&mut self, key: &[u8], beside: &[u8]) -> bool {
        debug_assert_eq!(beside.len(), self.beside);
        let place = self.find(self.hashing.hash(key), key);
        let Ok(slot) = place.slot else {
            return false;
        };
        self.change(&place, |segment| {
            let kept = segment.value_mut(slot);
            let at = kept.len().saturating_sub(beside.len());
            kept[at..].copy_from_slice(beside);
        });
        true
    }

    /// Answers whether there was such a key.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        self.remove_with(key, |_| ())
    }

    /// Shows the value to `last` before it goes; answers whether there was one.
    pub fn remove_with(&mut self, key: &[u8], last: impl FnOnce(&[u8])) -> bool {
        let hash = self.hashing.hash(key);
        let place = self.find(hash, key);
        let Ok(slot) = place.slot else {
            return false;
        };
        let kept = self.segment_at(place.page, place.segment).element(slot).1;
        last(self.parted(kept).0);
        self.change(&place, |segment| segment.remove(slot));
        while self.join_segments(hash) {
            self.join_pages(hash);
        }
        true
    }

    /// Lets `change` write to a segment, which may be copied for it, and keeps the books.
    fn change<R>(&mut self, place: &Position, change: impl FnOnce(&mut Segment) -> R) -> R {
        let page = &self.root.parts()[place.page];
        let before = page.own_bytes() + page.parts()[place.segment].bytes();
        let page = self.root.part_mut(place.page);
        let segment = page.part_mut(place.segment);
        let len = segment.len();
        let answer = change(segment);
        let grown = segment.len() as i32 - len as i32;
        let bytes = segment.bytes();
        let after = page.own_bytes() + bytes;
        if grown != 0 {
            page.weigh(place.segment, grown);
            self.root.weigh(place.page, grown);
            self.len = self.len.wrapping_add_signed(grown as isize);
        }
        self.parts_bytes = self.parts_bytes + after - before;
        answer
    }

    /// Splits the segment that holds this hash, or its page first; answers whether something was split.
    #[cold]
    fn split(&mut self, hash: u64) -> bool {
        let index = self.root.find(hash);
        let page = &self.root.parts()[index];
        let segment = &page.parts()[page.find(hash)];
        let Some(shared) = segment.shared_bits(tag_of(hash, segment.depth())) else {
            return false;
        };
        let room = PAGE_BITS - (segment.depth() - page.depth());
        if room == 0 {
            return self.split_page(hash);
        }
        if shared > 0 {
            self.narrow(hash, shared.min(room));
            return true;
        }
        let (low, high) = segment.split(&self.hashing);
        let before = page.own_bytes() + segment.bytes();
        let after = low.bytes() + high.bytes();
        let page = self.root.part_mut(index);
        page.split(hash, weighed(low), weighed(high));
        self.parts_bytes = self.parts_bytes + page.own_bytes() + after - before;
        true
    }

    /// Splits off empty segments `bits` times from the one that holds this hash. All its hashes begin, after the
    /// bits of its depth, with the same `bits` bits as this one does.
    ///
    /// So it is when elements come in the order of their hashes, from a table of the same seed for instance: the
    /// first some hundred lie close to each other.
    fn narrow(&mut self, hash: u64, bits: u8) {
        let index = self.root.find(hash);
        let page = &self.root.parts()[index];
        let before = page.own_bytes() + page.parts()[page.find(hash)].bytes();
        let page = self.root.part_mut(index);
        let held = page.part_mut(page.find(hash));
        let depth = held.depth();
        let mut segment = std::mem::replace(held, Segment::empty(depth));
        segment.narrow(bits, &self.hashing);
        let mut after = segment.bytes();
        for depth in depth + 1..=depth + bits {
            let empty = Segment::empty(depth);
            after += empty.bytes();
            let inner = if depth == segment.depth() {
                std::mem::take(&mut segment)
            } else {
                Segment::empty(depth)
            };
            let (inner, outer) = (weighed(inner), weighed(empty));
            if hash << (depth - 1) >> 63 == 0 {
                page.split(hash, inner, outer);
            } else {
                page.split(hash, outer, inner);
            }
        }
        self.parts_bytes = self.parts_bytes + page.own_bytes() + after - before;
    }

    fn split_page(&mut self, hash: u64) -> bool {
        let page = &self.root.parts()[self.root.find(hash)];
        let room = (self.root.parts().len() + 1) * ROOT_SLOTS_PER_PAGE;
        if page.depth() == self.root.bits() && self.root.slot_count() * 2 > room {
            return false;
        }
        let (low, high) = page.halves();
        let after = page_bytes(&low) + page_bytes(&high);
        self.parts_bytes = self.parts_bytes + after - page_bytes(page);
        let (low_weight, high_weight) = (low.weight(), high.weight());
        self.root
            .split(hash, (low, low_weight), (high, high_weight));
        true
    }

    /// Joins the segment that holds this hash with its twin if little is left of both.
    fn join_segments(&mut self, hash: u64) -> bool {
        let index = self.root.find(hash);
        let page = &self.root.parts()[index];
        if !page.parts()[page.find(hash)].is_light() {
            return false;
        }
        let Some((low, high)) = page.twins(hash) else {
            // The only segment of its page has its twin in another.
            return page.parts().len() == 1 && self.join_pages(hash);
        };
        let (low, high) = (&page.parts()[low], &page.parts()[high]);
        if !low.fits_with(high) {
            return false;
        }
        let (joined, weight) = weighed(Segment::join(low, high));
        let before = page.own_bytes() + low.bytes() + high.bytes();
        let after = joined.bytes();
        let page = self.root.part_mut(index);
        page.join(hash, joined, weight);
        self.parts_bytes = self.parts_bytes + page.own_bytes() + after - before;
        true
    }

    fn join_pages(&mut self, hash: u64) -> bool {
        let Some((low, high)) = self.root.twins(hash) else {
            return false;
        };
        let (low, high) = (&self.root.parts()[low], &self.root.parts()[high]);
        let small = |page: &Page| page.parts().len() <= SMALL_PAGE && page.bits() < PAGE_BITS;
        if !small(low) || !small(high) {
            return false;
        }
        let page = Page::unite(low, high);
        let before = page_bytes(low) + page_bytes(high);
        self.parts_bytes = self.parts_bytes + page_bytes(&page) - before;
        let weight = page.weight();
        self.root.join(hash, page, weight);
        true
    }

    /// Asserts every invariant. It walks the whole table: for tests.
    pub fn check(&self) {
        let mut bytes = 0;
        let len = self.root.check(0, |page, prefix| {
            bytes += page_bytes(page);
            page.check(prefix, |segment, prefix| {
                bytes += segment.bytes();
                segment.check(prefix, &self.hashing);
                segment.len()
            })
        });
        assert_eq!(len, self.len);
        assert_eq!(bytes, self.parts_bytes, "bytes miscounted");
    }
}

fn is_own<T>(part: &Arc<T>) -> bool {
    Arc::strong_count(part) == 1
}

fn weighed(segment: Segment) -> (Segment, u32) {
    let weight = segment.len() as u32;
    (segment, weight)
}

fn page_bytes(page: &Page) -> usize {
    ARC_BYTES + size_of::<Page>() + page.own_bytes()
}
