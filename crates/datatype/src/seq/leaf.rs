//! A leaf of the tree: one pack and how many entries it has.

use std::cmp::Ordering;

use super::marks::{Mark, Marks};
use crate::pack::{self, Pack};

use super::{LEAF_BYTES, LEAF_ITEMS, SOLO};

/// What an `Arc` keeps before what it holds.
pub(super) const ARC: usize = 2 * size_of::<usize>();

/// Entries of one leaf. Either they fit [`LEAF_BYTES`] and [`LEAF_ITEMS`], or there is exactly one, of more than
/// [`SOLO`] bytes: what is large shares its buffer with nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaf {
    buf: Vec<u8>,
    count: usize,
    marks: Marks,
}

impl Leaf {
    /// A leaf with one entry.
    pub(super) fn of(item: &[u8]) -> Self {
        let mut buf = Vec::with_capacity(pack::entry_size(item.len()));
        pack::push(&mut buf, item);
        Self {
            buf,
            count: 1,
            marks: Marks::default(),
        }
    }

    /// A leaf with the `count` entries of a valid pack.
    pub(super) fn of_pack(pack: &[u8], count: usize) -> Self {
        Self {
            buf: pack.to_vec(),
            count,
            marks: Marks::of(Pack(pack), count),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.buf
    }

    pub(super) fn pack(&self) -> Pack<'_> {
        Pack(&self.buf)
    }

    /// What this leaf has on the heap.
    pub(super) fn heap(&self) -> usize {
        ARC + size_of::<Self>() + self.buf.capacity()
    }

    /// Whether the one entry here is too large to have company.
    pub(super) fn is_solo(&self) -> bool {
        self.count == 1 && self.buf.len() > SOLO
    }

    /// Whether `item` finds room.
    pub(super) fn has_room(&self, item: &[u8]) -> bool {
        self.count < LEAF_ITEMS && self.buf.len() + pack::entry_size(item.len()) <= LEAF_BYTES
    }

    pub(super) fn is_overfull(&self) -> bool {
        self.count > LEAF_ITEMS || (self.buf.len() > LEAF_BYTES && self.count > 1)
    }

    /// Whether less than a quarter is in use.
    pub(super) fn is_sparse(&self) -> bool {
        self.count < LEAF_ITEMS / 4 && self.buf.len() < LEAF_BYTES / 4
    }

    /// Whether this and `other` together fill at most half a leaf, so that a merged leaf is far from splitting.
    pub(super) fn could_take(&self, other: &Self) -> bool {
        self.count + other.count <= LEAF_ITEMS / 2
            && self.buf.len() + other.buf.len() <= LEAF_BYTES / 2
    }

    /// Where entry `index` begins; the end for the entry after the last.
    pub(super) fn offset_of(&self, index: usize) -> usize {
        if index >= self.count {
            return self.buf.len();
        }
        let mark = self.marks.before(index);
        let offset = self.pack().skip(mark.offset, index - mark.index);
        offset.unwrap_or(self.buf.len())
    }

    pub(super) fn entry(&self, index: usize) -> Option<&[u8]> {
        self.pack().entry_at(self.offset_of(index))
    }

    pub(super) fn entry_at(&self, offset: usize) -> &[u8] {
        self.pack().entry_at(offset).unwrap_or_default()
    }

    /// The first entry; nothing in a leaf without any, which no tree keeps.
    pub(super) fn first(&self) -> &[u8] {
        self.entry_at(0)
    }

    /// Among sorted entries: index and offset of `item`, or of where it belongs.
    pub(super) fn search(&self, item: &[u8]) -> Result<(usize, usize), (usize, usize)> {
        let order = |entry: &[u8]| compare(entry, item);
        let mark = self
            .marks
            .last_where(|mark| order(self.entry_at(mark.offset)).is_le());
        let mut index = mark.index;
        for (offset, entry) in self.pack().entries_from(mark.offset) {
            match order(entry) {
                Ordering::Less => index += 1,
                Ordering::Equal => return Ok((index, offset)),
                Ordering::Greater => return Err((index, offset)),
            }
        }
        Err((index, self.buf.len()))
    }

    /// The index of the first entry for which `before` does not hold.
    pub(super) fn partition_point(&self, mut before: impl FnMut(&[u8]) -> bool) -> usize {
        let mut offsets = [0_u16; LEAF_ITEMS];
        if self.count > LEAF_ITEMS || self.buf.len() > LEAF_BYTES {
            return usize::from(before(self.first()));
        }
        for (slot, (offset, _)) in offsets.iter_mut().zip(self.pack().entries()) {
            *slot = offset as u16;
        }
        offsets[..self.count].partition_point(|&offset| before(self.entry_at(usize::from(offset))))
    }

    pub(super) fn insert(&mut self, index: usize, offset: usize, item: &[u8]) {
        pack::insert(&mut self.buf, offset, item);
        self.count += 1;
        self.marks
            .inserted(Mark { index, offset }, pack::entry_size(item.len()));
        if self.marks.leave_gap_at(index, self.count) {
            self.marks = Marks::of(self.pack(), self.count);
        }
    }

    pub(super) fn replace(&mut self, offset: usize, item: &[u8]) {
        let before = self.buf.len();
        pack::replace(&mut self.buf, offset, item);
        self.marks.resized(offset, before, self.buf.len());
    }

    pub(super) fn remove(&mut self, offset: usize) {
        let size = pack::remove(&mut self.buf, offset, 1);
        self.count -= 1;
        self.marks.removed(offset, size, self.buf.len());
        self.shed();
    }

    /// Takes off the entries from `index` on, which begin at `offset`. Both sides get buffers of their own size: an
    /// allocator asked to shrink one in place may well keep all of it.
    pub(super) fn split_off(&mut self, index: usize, offset: usize) -> Self {
        let (buf, count) = (fitted(&self.buf[offset..]), self.count - index);
        let right = Self {
            marks: Marks::of(Pack(&buf), count),
            buf,
            count,
        };
        self.buf = fitted(&self.buf[..offset]);
        self.count = index;
        self.marks.cut(offset);
        right
    }

    /// Takes off the entries that lie nearest to the second half of the bytes. With no entry of more than [`SOLO`]
    /// bytes and one entry too many, both halves fit a leaf.
    pub(super) fn split_half(&mut self) -> Self {
        let half = self.buf.len() / 2;
        let (mut at, mut offset) = (1, self.pack().next_offset(0).unwrap_or(0));
        while at + 1 < self.count {
            let Some(next) = self.pack().next_offset(offset) else {
                break;
            };
            if next.abs_diff(half) > offset.abs_diff(half) {
                break;
            }
            (at, offset) = (at + 1, next);
        }
        self.split_off(at, offset)
    }

    pub(super) fn append(&mut self, right: &Self) {
        pack::grow(&mut self.buf, right.buf.len());
        self.buf.extend_from_slice(&right.buf);
        self.count += right.count;
        self.marks = Marks::of(self.pack(), self.count);
    }

    /// Gives memory back when more than half of it is unused.
    fn shed(&mut self) {
        if self.buf.capacity() > 2 * pack::roomy(self.buf.len()) {
            self.buf = fitted(&self.buf);
        }
    }

    /// What must hold of every leaf of a tree.
    pub(super) fn check(&self) {
        assert!(self.count > 0, "an empty leaf");
        let pack = Pack::checked(&self.buf);
        assert_eq!(pack.map(Pack::count), Some(self.count), "entries of a leaf");
        assert!(
            self.is_solo() || !self.is_overfull(),
            "a leaf beyond its bounds"
        );
        self.marks.check(self.pack(), self.count);
        assert!(
            self.is_solo()
                || self
                    .pack()
                    .iter()
                    .all(|item| pack::entry_size(item.len()) <= SOLO)
        );
    }
}

fn fitted(bytes: &[u8]) -> Vec<u8> {
    let mut buf = Vec::with_capacity(pack::roomy(bytes.len()));
    buf.extend_from_slice(bytes);
    buf
}

/// The order of bytes; the first eight are compared at once.
#[inline]
fn compare(left: &[u8], right: &[u8]) -> Ordering {
    if let (Some(first), Some(second)) = (left.first_chunk::<8>(), right.first_chunk::<8>())
        && first != second
    {
        return u64::from_be_bytes(*first).cmp(&u64::from_be_bytes(*second));
    }
    left.cmp(right)
}
