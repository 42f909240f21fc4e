//! Inner nodes: for each child what a descent needs to choose it without touching it.

use std::sync::Arc;

use super::FAN;
use super::leaf::{ARC, Leaf};

/// How many children of an inner node are sampled to estimate the memory that a clone does not share.
const SAMPLED: usize = 8;

/// The first 16 bytes of a child's first item, with zeros where it is shorter: keys are ordered as the items are, but
/// different items may have equal keys.
pub(super) type Key = u128;

pub(super) fn key_of(item: &[u8]) -> Key {
    match item.first_chunk::<16>() {
        Some(bytes) => Key::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; 16];
            bytes[..item.len()].copy_from_slice(item);
            Key::from_be_bytes(bytes)
        }
    }
}

/// A subtree. All leaves of a tree lie at one depth.
#[derive(Clone, Debug, Default)]
pub(super) enum Node {
    #[default]
    Empty,
    Leaf(Arc<Leaf>),
    Inner(Arc<Inner>),
}

/// A subtree with what its parent keeps about it.
#[derive(Debug)]
pub(super) struct Kid {
    pub(super) node: Node,
    pub(super) count: usize,
    pub(super) key: Key,
}

impl Kid {
    pub(super) fn of(node: Node, count: usize) -> Self {
        Self {
            key: node.key(),
            count,
            node,
        }
    }

    pub(super) fn leaf(leaf: Leaf) -> Self {
        let count = leaf.count();
        Self::of(Node::Leaf(Arc::new(leaf)), count)
    }
}

impl Node {
    /// The bytes on the heap of this subtree, in time independent of its size.
    #[inline]
    pub(super) fn heap(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Leaf(leaf) => leaf.heap(),
            Self::Inner(inner) => inner.heap,
        }
    }

    fn is_own(&self) -> bool {
        match self {
            Self::Empty => false,
            Self::Leaf(leaf) => Arc::strong_count(leaf) == 1,
            Self::Inner(inner) => Arc::strong_count(inner) == 1,
        }
    }

    /// Of [`Node::heap`], what no other tree shares; of inner children some that lie evenly apart stand for all.
    pub(super) fn own(&self) -> usize {
        let inner = match self {
            _ if !self.is_own() => return 0,
            Self::Inner(inner) => inner,
            _ => return self.heap(),
        };
        let kids = inner.kids[..inner.len].iter().filter(|kid| kid.is_own());
        let count = kids.clone().count();
        let looks = if self.height() > 1 { SAMPLED } else { FAN };
        let apart = count.div_ceil(looks).max(1);
        let seen = count.div_ceil(apart).max(1);
        INNER_HEAP + kids.step_by(apart).map(Self::own).sum::<usize>() * count / seen
    }

    /// The key of the first item.
    pub(super) fn key(&self) -> Key {
        match self {
            Self::Empty => 0,
            Self::Leaf(leaf) => key_of(leaf.first()),
            Self::Inner(inner) => inner.keys[0],
        }
    }

    pub(super) fn first(&self) -> &[u8] {
        let mut node = self;
        loop {
            match node {
                Self::Empty => return &[],
                Self::Leaf(leaf) => return leaf.first(),
                Self::Inner(inner) => node = &inner.kids[0],
            }
        }
    }

    /// A node above two of one height.
    pub(super) fn over(left: Kid, right: Kid) -> Self {
        Self::Inner(Arc::new(Inner::of([left, right])))
    }

    /// Whether this is an inner node that a root must not be.
    pub(super) fn is_thin(&self) -> bool {
        matches!(self, Self::Inner(inner) if inner.len <= 1)
    }

    /// How many levels of inner nodes lie above the leaves.
    pub(super) fn height(&self) -> usize {
        let (mut node, mut height) = (self, 0);
        while let Self::Inner(inner) = node {
            node = &inner.kids[0];
            height += 1;
        }
        height
    }

    /// Whether so little is in use that a merge is worth a look at the neighbours.
    pub(super) fn is_sparse(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Leaf(leaf) => leaf.is_sparse(),
            Self::Inner(inner) => inner.len < FAN / 4,
        }
    }

    /// Whether `right`, of the same height, may become part of this node.
    pub(super) fn could_take(&self, right: &Self) -> bool {
        match (self, right) {
            (Self::Leaf(left), Self::Leaf(right)) => left.could_take(right),
            (Self::Inner(left), Self::Inner(right)) => left.len + right.len <= FAN / 2,
            _ => false,
        }
    }

    /// Moves what is in `right` to the end of this node.
    pub(super) fn take(&mut self, right: Self) {
        match (self, right) {
            (Self::Leaf(left), Self::Leaf(right)) => Arc::make_mut(left).append(&right),
            (Self::Inner(left), Self::Inner(mut right)) => {
                let right = Arc::make_mut(&mut right);
                let left = Arc::make_mut(left);
                let seam = left.len;
                left.heap += right.heap - INNER_HEAP;
                for index in 0..right.len {
                    left.put(seam + index, right.kid_mut(index));
                }
                if seam > 0 && seam < left.len {
                    left.merge_if_sparse(seam);
                }
            }
            _ => {}
        }
    }
}

/// What an inner node has on the heap without its children.
pub(super) const INNER_HEAP: usize = ARC + size_of::<Inner>();

/// Up to [`FAN`] children. Each array is a run of cache lines of its own: a descent by key or by position reads one of
/// them and then one child.
#[derive(Clone, Debug)]
pub(super) struct Inner {
    pub(super) len: usize,
    /// Bytes on the heap of this whole subtree.
    pub(super) heap: usize,
    pub(super) keys: [Key; FAN],
    pub(super) counts: [usize; FAN],
    pub(super) kids: [Node; FAN],
}

impl Inner {
    pub(super) fn new() -> Self {
        Self {
            len: 0,
            heap: INNER_HEAP,
            keys: [0; FAN],
            counts: [0; FAN],
            kids: [const { Node::Empty }; FAN],
        }
    }

    pub(super) fn of(kids: impl IntoIterator<Item = Kid>) -> Self {
        let mut inner = Self::new();
        for kid in kids {
            inner.heap += kid.node.heap();
            inner.put(inner.len, kid);
        }
        inner
    }

    pub(super) fn total(&self) -> usize {
        self.counts[..self.len].iter().sum()
    }

    /// Puts a child at `at`; there is room. [`Inner::heap`] is the caller's.
    pub(super) fn put(&mut self, at: usize, kid: Kid) {
        let end = self.len;
        self.keys.copy_within(at..end, at + 1);
        self.counts.copy_within(at..end, at + 1);
        self.kids[at..=end].rotate_right(1);
        (self.keys[at], self.counts[at], self.kids[at]) = (kid.key, kid.count, kid.node);
        self.len += 1;
    }

    /// Takes the child at `at` out. [`Inner::heap`] is the caller's.
    pub(super) fn take(&mut self, at: usize) -> Kid {
        let kid = self.kid_mut(at);
        let end = self.len;
        self.keys.copy_within(at + 1..end, at);
        self.counts.copy_within(at + 1..end, at);
        self.kids[at..end].rotate_left(1);
        self.len -= 1;
        kid
    }

    /// Moves the child at `at` out and leaves a hole in its place.
    fn kid_mut(&mut self, at: usize) -> Kid {
        let node = std::mem::take(&mut self.kids[at]);
        Kid {
            node,
            count: self.counts[at],
            key: self.keys[at],
        }
    }

    /// Takes off the children from `at` on, and accounts for them on both sides.
    pub(super) fn split_off(&mut self, at: usize) -> Self {
        let mut right = Self::new();
        for index in at..self.len {
            let kid = self.kid_mut(index);
            right.heap += kid.node.heap();
            right.put(index - at, kid);
        }
        self.len = at.min(self.len);
        self.heap -= right.heap - INNER_HEAP;
        right
    }

    /// Puts a child at `at`, accounts for it, and hands back the node that must follow this one when there was no room.
    /// At the end of the whole sequence (`last`) or at its beginning (`first`), the full side stays full.
    pub(super) fn add(&mut self, at: usize, kid: Kid, first: bool, last: bool) -> Option<Kid> {
        if self.len < FAN {
            self.heap += kid.node.heap();
            self.put(at, kid);
            return None;
        }
        let cut = match () {
            () if last && at == FAN => FAN,
            () if first && at <= 1 => 1,
            () => FAN / 2,
        };
        let mut right = self.split_off(cut);
        let (side, at) = if at < cut {
            (&mut *self, at)
        } else {
            (&mut right, at - cut)
        };
        side.heap += kid.node.heap();
        side.put(at, kid);
        let count = right.total();
        Some(Kid::of(Node::Inner(Arc::new(right)), count))
    }

    /// Merges the child at `at` with a neighbour if both use little of what they have.
    pub(super) fn merge_if_sparse(&mut self, at: usize) {
        if at >= self.len || !self.kids[at].is_sparse() {
            return;
        }
        let fits = |left: usize| self.kids[left].could_take(&self.kids[left + 1]);
        let left = match () {
            () if at + 1 < self.len && fits(at) => at,
            () if at > 0 && fits(at - 1) => at - 1,
            () => return,
        };
        let right = self.take(left + 1);
        self.heap -= self.kids[left].heap() + right.node.heap();
        self.kids[left].take(right.node);
        self.counts[left] += right.count;
        self.heap += self.kids[left].heap();
    }

    /// The child that has item `index`, and the index within it. `total` is this node's number of items.
    #[inline]
    pub(super) fn child_with(&self, index: usize, total: usize) -> (usize, usize) {
        let counts = &self.counts[..self.len];
        let last = self.len.saturating_sub(1);
        if let Some(count) = counts.last()
            && let Some(within) = index.checked_sub(total - count)
        {
            return (last, within);
        }
        // By eights: their sums need no branches, and branches that are hard to predict are what this costs.
        let (mut child, mut rest) = (0, index);
        for eight in counts.chunks(8) {
            let sum: usize = eight.iter().sum();
            if rest < sum {
                break;
            }
            rest -= sum;
            child += eight.len();
        }
        for &count in &counts[child..] {
            if rest < count {
                return (child, rest);
            }
            rest -= count;
            child += 1;
        }
        (last, rest)
    }

    /// The child into which an item goes that is to have `index`, and its index there: the end of one child rather than
    /// the beginning of the next.
    #[inline]
    pub(super) fn child_for(&self, index: usize, total: usize) -> (usize, usize) {
        match index.checked_sub(1) {
            None => (0, 0),
            Some(before) => {
                let (child, at) = self.child_with(before, total);
                (child, at + 1)
            }
        }
    }

    /// Among sorted items: the last child whose first item is not after `item`, or else the first child.
    #[inline]
    pub(super) fn child_sorted(&self, item: &[u8]) -> usize {
        let key = key_of(item);
        let keys = &self.keys[..self.len];
        let below = keys.partition_point(|&other| other < key);
        if keys.get(below) != Some(&key) {
            return below.saturating_sub(1);
        }
        let ties = keys[below..].partition_point(|&other| other == key);
        let at_most = self.kids[below..below + ties].partition_point(|kid| kid.first() <= item);
        (below + at_most).saturating_sub(1)
    }
}
