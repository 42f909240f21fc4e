//! Changes of one item: one descent each, which copies what is shared on its way.

use std::sync::Arc;

use super::leaf::Leaf;
use super::node::{Kid, Node};

/// Where a descent is going.
#[derive(Clone, Copy)]
pub(super) enum Target<'a> {
    At(usize),
    /// Among sorted items: where this one is, or belongs.
    Sorted(&'a [u8]),
}

/// What is done there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    Insert,
    Replace,
}

/// Whether a subtree has the beginning or the end of the whole sequence. Nodes that split there leave the other side as
/// full as it was, so that what only grows at its ends has full nodes.
#[derive(Clone, Copy)]
pub(super) struct Edge {
    pub(super) first: bool,
    pub(super) last: bool,
}

/// What a parent has to do after its child took an item.
pub(super) struct Grown {
    /// What must follow the child.
    pub(super) next: Option<Kid>,
    /// Whether the child begins with another item than before.
    first: bool,
}

impl Node {
    /// Puts `item`, which is too small for a leaf of its own, where it belongs. Nothing happens, and `None` is the
    /// answer, if it is there already where items are sorted.
    pub(super) fn put(
        &mut self,
        total: usize,
        target: Target<'_>,
        put: Put,
        item: &[u8],
        edge: Edge,
    ) -> Option<Grown> {
        let inner = match self {
            Self::Empty => {
                *self = Self::Leaf(Arc::new(Leaf::of(item)));
                return Some(Grown {
                    next: None,
                    first: true,
                });
            }
            Self::Leaf(leaf) => return put_leaf(leaf, target, put, item, edge),
            Self::Inner(inner) => Arc::make_mut(inner),
        };
        let (child, target) = match target {
            Target::At(index) if put == Put::Insert => {
                let (child, index) = inner.child_for(index, total);
                (child, Target::At(index))
            }
            Target::At(index) => {
                let (child, index) = inner.child_with(index, total);
                (child, Target::At(index))
            }
            Target::Sorted(item) => (inner.child_sorted(item), target),
        };
        let below = Edge {
            first: edge.first && child == 0,
            last: edge.last && child + 1 == inner.len,
        };
        let kid = &mut inner.kids[child];
        let before = kid.heap();
        let grown = kid.put(inner.counts[child], target, put, item, below)?;
        if grown.first {
            inner.keys[child] = kid.key();
        }
        inner.heap = inner.heap - before + kid.heap();
        inner.counts[child] += usize::from(put == Put::Insert);
        let first = grown.first && child == 0;
        let Some(next) = grown.next else {
            return Some(Grown { next: None, first });
        };
        inner.counts[child] -= next.count;
        let next = inner.add(child + 1, next, edge.first, edge.last);
        if next.is_none() {
            // Small items that go between large ones each come in a leaf of their own.
            inner.merge_if_sparse(child + 1);
            inner.merge_if_sparse(child);
        }
        Some(Grown { next, first })
    }

    /// Takes one item out after `see` saw it. `None` if it is not there.
    pub(super) fn cut_out(
        &mut self,
        total: usize,
        target: Target<'_>,
        see: &mut dyn FnMut(&[u8]),
    ) -> Option<()> {
        let inner = match self {
            Self::Empty => return None,
            Self::Leaf(leaf) => {
                let offset = match target {
                    Target::At(index) => leaf.offset_of(index),
                    Target::Sorted(item) => leaf.search(item).ok()?.1,
                };
                see(leaf.entry_at(offset));
                if leaf.count() == 1 {
                    *self = Self::Empty;
                } else {
                    Arc::make_mut(leaf).remove(offset);
                }
                return Some(());
            }
            Self::Inner(inner) => Arc::make_mut(inner),
        };
        let (child, target) = match target {
            Target::At(index) => {
                let (child, index) = inner.child_with(index, total);
                (child, Target::At(index))
            }
            Target::Sorted(item) => (inner.child_sorted(item), target),
        };
        let kid = &mut inner.kids[child];
        let before = kid.heap();
        kid.cut_out(inner.counts[child], target, see)?;
        inner.heap = inner.heap - before + kid.heap();
        inner.counts[child] -= 1;
        if inner.counts[child] == 0 {
            inner.take(child);
            if inner.len == 0 {
                *self = Self::Empty;
            }
        } else {
            inner.keys[child] = inner.kids[child].key();
            inner.merge_if_sparse(child);
        }
        Some(())
    }
}

fn put_leaf(
    leaf: &mut Arc<Leaf>,
    target: Target<'_>,
    put: Put,
    item: &[u8],
    edge: Edge,
) -> Option<Grown> {
    let (index, offset) = match target {
        Target::At(index) => (index, leaf.offset_of(index)),
        Target::Sorted(item) => match leaf.search(item) {
            Ok(_) => return None,
            Err(at) => at,
        },
    };
    if put == Put::Replace {
        let leaf = Arc::make_mut(leaf);
        leaf.replace(offset, item);
        let next = leaf.is_overfull().then(|| Kid::leaf(leaf.split_half()));
        return Some(Grown {
            next,
            first: index == 0,
        });
    }
    let full = !leaf.has_room(item);
    if index == leaf.count() && (leaf.is_solo() || (full && edge.last)) {
        return Some(Grown {
            next: Some(Kid::leaf(Leaf::of(item))),
            first: false,
        });
    }
    if index == 0 && (leaf.is_solo() || (full && edge.first)) {
        let count = leaf.count();
        let old = std::mem::replace(leaf, Arc::new(Leaf::of(item)));
        return Some(Grown {
            next: Some(Kid::of(Node::Leaf(old), count)),
            first: true,
        });
    }
    let leaf = Arc::make_mut(leaf);
    leaf.insert(index, offset, item);
    let next = full.then(|| Kid::leaf(leaf.split_half()));
    Some(Grown {
        next,
        first: index == 0,
    })
}
