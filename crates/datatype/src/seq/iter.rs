//! Walking over items in either direction: a descent for each leaf, and within a leaf from entry to entry.

use std::iter::FusedIterator;

use super::{LEAF_ITEMS, Seq};
use crate::pack::{Entries, Pack};

/// See [`Seq::iter_from`].
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    seq: &'a Seq,
    /// The index of the item that comes next.
    index: usize,
    entries: Entries<'a>,
}

impl<'a> Iter<'a> {
    pub(super) fn new(seq: &'a Seq, index: usize) -> Self {
        Self {
            seq,
            index: index.min(seq.len()),
            entries: Pack(&[]).entries(),
        }
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let (_, item) = match self.entries.next() {
            Some(entry) => entry,
            None => {
                let (leaf, index) = self.seq.leaf_with(self.index)?;
                self.entries = leaf.pack().entries_from(leaf.offset_of(index));
                self.entries.next()?
            }
        };
        self.index += 1;
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.seq.len() - self.index;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Iter<'_> {}
impl FusedIterator for Iter<'_> {}

/// See [`Seq::iter_back_from`].
#[derive(Clone, Debug)]
pub struct IterBack<'a> {
    seq: &'a Seq,
    /// How many items are still to come.
    left: usize,
    pack: Pack<'a>,
    /// Where the entries of this leaf begin; the first `here` are still to come.
    offsets: [u16; LEAF_ITEMS],
    here: usize,
}

impl<'a> IterBack<'a> {
    pub(super) fn new(seq: &'a Seq, index: usize) -> Self {
        let left = seq.len().min(index.saturating_add(1));
        Self {
            seq,
            left,
            pack: Pack(&[]),
            offsets: [0; LEAF_ITEMS],
            here: 0,
        }
    }
}

impl<'a> Iterator for IterBack<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.here == 0 {
            let (leaf, index) = self.seq.leaf_with(self.left.checked_sub(1)?)?;
            self.pack = leaf.pack();
            self.here = index + 1;
            // Only the one entry of a large leaf may end beyond 16 bits, and none begins there.
            for (slot, (offset, _)) in self.offsets[..=index].iter_mut().zip(self.pack.entries()) {
                *slot = offset as u16;
            }
        }
        self.here -= 1;
        self.left -= 1;
        self.pack.entry_at(usize::from(self.offsets[self.here]))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for IterBack<'_> {}
impl FusedIterator for IterBack<'_> {}
