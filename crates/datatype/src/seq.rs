//! [`Seq`]: a sequence of byte strings as a counted B+tree of shared pieces. It carries large lists and, its items
//! sorted, the order of large sorted sets.
//!
//! ```text
//!            inner: per child a count, 16 bytes of its first item, the child
//!           /     |     \
//!        inner  inner  inner          all leaves at one depth
//!        /  \    ...
//!     leaf  leaf                      a pack of up to 2 KiB, or one large item alone
//! ```
//!
//! - **Positions.** Counts lead to item `i` and tell a found item's position, both in O(log n).
//! - **Order.** If the items are kept sorted by their bytes, [`Seq::insert_sorted`], [`Seq::remove_sorted`] and
//!   [`Seq::rank`] find theirs by the 16 bytes that lie in the inner nodes, and read items only where these tie.
//! - **Sharing.** Nodes are behind `Arc`s. A clone costs O(1) and never changes; a write to either copies the nodes on
//!   its path that are still shared, once.
//! - **Ranges.** Cutting in two and joining copy one path, so a range is taken out without a visit to what is in it. What
//!   is taken out is handed back, for dropping it takes time in proportion to its size.
//! - **Ends.** Nodes that split at an end of the sequence leave the other side full, so queues have full leaves; empty
//!   leaves vanish, and neighbours that use little of what they have become one.
//! - **Memory.** [`Seq::bytes`] is exact. What two clones share counts in both.
//!
//! Indices out of range are answered, not punished: reads give nothing and writes do nothing.

mod check;
mod cut;
mod edit;
mod iter;
mod leaf;
mod marks;
mod node;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub use iter::{Iter, IterBack};

use crate::pack::{self, Pack};
use edit::{Edge, Put, Target};
use leaf::Leaf;
use node::{Kid, Node};

/// The most bytes of a leaf with more than one item.
const LEAF_BYTES: usize = 2048;
/// The most items of a leaf.
const LEAF_ITEMS: usize = 128;
/// An item that takes more bytes than this in a pack has a leaf of its own, so that nothing else is copied with it.
const SOLO: usize = LEAF_BYTES / 2;
/// The most children of an inner node.
const FAN: usize = 64;
/// Ranges of up to this many items are taken out one by one, which is cheaper than cutting and joining.
const FEW: usize = 8;

/// A sequence of byte strings. See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Seq {
    root: Node,
    len: usize,
}

impl Seq {
    /// An empty sequence, which has nothing on the heap.
    pub const fn new() -> Self {
        Self {
            root: Node::Empty,
            len: 0,
        }
    }

    /// The items of a valid pack.
    pub fn from_pack(pack: Pack<'_>) -> Self {
        let mut seq = Self::new();
        seq.extend_pack(pack);
        seq
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no item.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes on the heap by capacity, what is shared with clones included.
    pub fn bytes(&self) -> usize {
        self.root.heap()
    }

    /// Of [`Seq::bytes`], what no clone shares: what dropping this one gives back. Where it is much, it is estimated
    /// from some of the nodes.
    pub fn own_bytes(&self) -> usize {
        self.root.own()
    }

    /// Item `index`.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let (leaf, index) = self.leaf_with(index)?;
        leaf.entry(index)
    }

    /// The items in order.
    pub fn iter(&self) -> Iter<'_> {
        self.iter_from(0)
    }

    /// Items `index`, `index + 1`…
    pub fn iter_from(&self, index: usize) -> Iter<'_> {
        Iter::new(self, index)
    }

    /// Items `index`, `index - 1`… down to the first. An index behind the end begins with the last.
    pub fn iter_back_from(&self, index: usize) -> IterBack<'_> {
        IterBack::new(self, index)
    }

    /// The items from `index` to the end of their leaf as they lie there, and how many they are: for writing out a
    /// sequence piece by piece. Nothing only if there is no item `index`.
    pub fn chunk(&self, index: usize) -> (Pack<'_>, usize) {
        let Some((leaf, index)) = self.leaf_with(index) else {
            return (Pack(&[]), 0);
        };
        let bytes = &leaf.bytes()[leaf.offset_of(index)..];
        (Pack(bytes), leaf.count() - index)
    }

    /// In a sequence where `before` holds for a prefix of the items and no others: the length of that prefix.
    pub fn partition_point(&self, mut before: impl FnMut(&[u8]) -> bool) -> usize {
        let (mut node, mut passed) = (&self.root, 0);
        loop {
            match node {
                Node::Empty => return 0,
                Node::Leaf(leaf) => return passed + leaf.partition_point(before),
                Node::Inner(inner) => {
                    let after = inner.kids[..inner.len].partition_point(|kid| before(kid.first()));
                    let child = after.saturating_sub(1);
                    passed += inner.counts[..child].iter().sum::<usize>();
                    node = &inner.kids[child];
                }
            }
        }
    }

    /// In a sorted sequence: the position of `item`, or else the one where it belongs.
    pub fn rank(&self, item: &[u8]) -> Result<usize, usize> {
        let (mut node, mut passed) = (&self.root, 0);
        loop {
            match node {
                Node::Empty => return Err(0),
                Node::Leaf(leaf) => {
                    return match leaf.search(item) {
                        Ok((index, _)) => Ok(passed + index),
                        Err((index, _)) => Err(passed + index),
                    };
                }
                Node::Inner(inner) => {
                    let child = inner.child_sorted(item);
                    passed += inner.counts[..child].iter().sum::<usize>();
                    node = &inner.kids[child];
                }
            }
        }
    }

    /// Adds an item at the end.
    pub fn push_back(&mut self, item: &[u8]) {
        self.insert(self.len, item);
    }

    /// Adds an item at the beginning.
    pub fn push_front(&mut self, item: &[u8]) {
        self.insert(0, item);
    }

    /// Takes the last item.
    pub fn pop_back(&mut self) -> Option<Vec<u8>> {
        self.pop_back_with(<[u8]>::to_vec)
    }

    /// Takes the first item.
    pub fn pop_front(&mut self) -> Option<Vec<u8>> {
        self.pop_front_with(<[u8]>::to_vec)
    }

    /// Shows the last item to `see` and takes it out.
    pub fn pop_back_with<R>(&mut self, see: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.remove_with(self.len.checked_sub(1)?, see)
    }

    /// Shows the first item to `see` and takes it out.
    pub fn pop_front_with<R>(&mut self, see: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.remove_with(0, see)
    }

    /// Puts an item before item `index`, or at the end. False, and nothing happens, beyond that.
    pub fn insert(&mut self, index: usize, item: &[u8]) -> bool {
        if index > self.len {
            return false;
        }
        if is_large(item) {
            let tail = self.split_off(index);
            self.append(Self::alone(item));
            self.append(tail);
        } else {
            self.put(Target::At(index), Put::Insert, item);
        }
        true
    }

    /// Takes item `index` out.
    pub fn remove(&mut self, index: usize) -> Option<Vec<u8>> {
        self.remove_with(index, <[u8]>::to_vec)
    }

    /// Shows item `index` to `see` and takes it out.
    pub fn remove_with<R>(&mut self, index: usize, see: impl FnOnce(&[u8]) -> R) -> Option<R> {
        if index >= self.len {
            return None;
        }
        let (mut see, mut seen) = (Some(see), None);
        self.cut_out(Target::At(index), &mut |item| {
            seen = see.take().map(|see| see(item))
        });
        seen
    }

    /// Puts another item in place of item `index`. False if there is none.
    pub fn replace(&mut self, index: usize, item: &[u8]) -> bool {
        let Some((leaf, _)) = self.leaf_with(index) else {
            return false;
        };
        if leaf.is_solo() || is_large(item) {
            self.remove_with(index, |_| ());
            self.insert(index, item);
        } else {
            self.put(Target::At(index), Put::Replace, item);
        }
        true
    }

    /// In a sorted sequence without duplicates: puts `item` where it belongs. False if it is there already.
    pub fn insert_sorted(&mut self, item: &[u8]) -> bool {
        if !is_large(item) {
            return self.put(Target::Sorted(item), Put::Insert, item);
        }
        match self.rank(item) {
            Ok(_) => false,
            Err(index) => self.insert(index, item),
        }
    }

    /// In a sorted sequence: takes `item` out. False if it is not there.
    pub fn remove_sorted(&mut self, item: &[u8]) -> bool {
        self.cut_out(Target::Sorted(item), &mut |_| ())
    }

    /// Takes off the items from `index` on, without a visit to them.
    pub fn split_off(&mut self, index: usize) -> Self {
        if index >= self.len {
            return Self::new();
        }
        if index == 0 {
            return std::mem::take(self);
        }
        let root = self.root.split_off(index, self.len);
        let tail = Self {
            root: root.lowered(),
            len: self.len - index,
        };
        self.root = std::mem::take(&mut self.root).lowered();
        self.len = index;
        tail
    }

    /// Adds the items of another sequence at the end, without a visit to them.
    pub fn append(&mut self, tail: Self) {
        if self.is_empty() {
            *self = tail;
        } else if !tail.is_empty() {
            let left = Kid::of(std::mem::take(&mut self.root), self.len);
            self.root = Node::join(left, Kid::of(tail.root, tail.len));
            self.len += tail.len;
        }
    }

    /// Takes the items of `range`, as far as there are such, out. Handed back is what the caller may want to drop
    /// elsewhere: all of them, or nothing if they were few.
    pub fn remove_range(&mut self, range: Range<usize>) -> Self {
        let end = range.end.min(self.len);
        let count = end.saturating_sub(range.start);
        if count <= FEW {
            for _ in 0..count {
                self.remove_with(range.start, |_| ());
            }
            return Self::new();
        }
        let tail = self.split_off(end);
        let removed = self.split_off(range.start);
        self.append(tail);
        removed
    }

    /// Takes all items but those of `range` out. Handed back is what [`Seq::remove_range`] would hand back: what was
    /// before the range and what was behind it.
    pub fn keep(&mut self, range: Range<usize>) -> [Self; 2] {
        if range.is_empty() || range.start >= self.len {
            return [std::mem::take(self), Self::new()];
        }
        let behind = self.remove_range(range.end..self.len);
        [self.remove_range(0..range.start), behind]
    }

    /// Adds the entries of a valid pack at the end.
    pub fn extend_pack(&mut self, pack: Pack<'_>) {
        if pack.0.len() <= LEAF_BYTES {
            return pack.iter().for_each(|item| self.push_back(item));
        }
        let (mut start, mut count) = (0, 0);
        for (offset, item) in pack.entries() {
            let end = offset + pack::entry_size(item.len());
            let large = is_large(item);
            if count > 0 && (large || count == LEAF_ITEMS || end - start > LEAF_BYTES) {
                self.append(Self::of_leaf(Leaf::of_pack(&pack.0[start..offset], count)));
                (start, count) = (offset, 0);
            }
            count += 1;
            if large {
                self.append(Self::alone(item));
                (start, count) = (end, 0);
            }
        }
        if count > 0 {
            self.append(Self::of_leaf(Leaf::of_pack(&pack.0[start..], count)));
        }
    }

    fn alone(item: &[u8]) -> Self {
        Self::of_leaf(Leaf::of(item))
    }

    fn of_leaf(leaf: Leaf) -> Self {
        let kid = Kid::leaf(leaf);
        Self {
            root: kid.node,
            len: kid.count,
        }
    }

    /// The leaf that has item `index`, and the item's index there.
    fn leaf_with(&self, index: usize) -> Option<(&Leaf, usize)> {
        if index >= self.len {
            return None;
        }
        let (mut node, mut index, mut total) = (&self.root, index, self.len);
        loop {
            match node {
                Node::Empty => return None,
                Node::Leaf(leaf) => return Some((leaf, index)),
                Node::Inner(inner) => {
                    let (child, within) = inner.child_with(index, total);
                    (node, index, total) = (&inner.kids[child], within, inner.counts[child]);
                }
            }
        }
    }

    /// One descent that puts a small item; see [`Node::put`].
    fn put(&mut self, place: Target<'_>, put: Put, item: &[u8]) -> bool {
        let whole = Edge {
            first: true,
            last: true,
        };
        let Some(grown) = self.root.put(self.len, place, put, item, whole) else {
            return false;
        };
        self.len += usize::from(put == Put::Insert);
        if let Some(next) = grown.next {
            let old = Kid::of(std::mem::take(&mut self.root), self.len - next.count);
            self.root = Node::over(old, next);
        }
        true
    }

    /// One descent that takes an item out; see [`Node::cut_out`].
    fn cut_out(&mut self, place: Target<'_>, see: &mut dyn FnMut(&[u8])) -> bool {
        if self.root.cut_out(self.len, place, see).is_none() {
            return false;
        }
        self.len -= 1;
        if self.root.is_thin() {
            self.root = std::mem::take(&mut self.root).lowered();
        }
        true
    }
}

impl<'a> FromIterator<&'a [u8]> for Seq {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(items: I) -> Self {
        let mut seq = Self::new();
        items.into_iter().for_each(|item| seq.push_back(item));
        seq
    }
}

impl<'a> IntoIterator for &'a Seq {
    type Item = &'a [u8];
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

fn is_large(item: &[u8]) -> bool {
    pack::entry_size(item.len()) > SOLO
}
