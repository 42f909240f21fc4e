//! Cutting a tree in two and joining two, along one path each: ranges are taken out without a visit to what is in them.

use std::sync::Arc;

use super::node::{Kid, Node};

impl Node {
    /// Takes off the items from `at` on; `0 < at < total`. Both parts keep this node's height.
    pub(super) fn split_off(&mut self, at: usize, total: usize) -> Self {
        match self {
            Self::Empty => Self::Empty,
            Self::Leaf(leaf) => {
                let leaf = Arc::make_mut(leaf);
                let offset = leaf.offset_of(at);
                Self::Leaf(Arc::new(leaf.split_off(at, offset)))
            }
            Self::Inner(inner) => {
                let inner = Arc::make_mut(inner);
                let (child, at) = inner.child_with(at, total);
                if at == 0 {
                    return Self::Inner(Arc::new(inner.split_off(child)));
                }
                let count = inner.counts[child];
                let before = inner.kids[child].heap();
                let cut = inner.kids[child].split_off(at, count);
                inner.heap = inner.heap - before + inner.kids[child].heap();
                inner.counts[child] = at;
                let mut right = inner.split_off(child + 1);
                right.heap += cut.heap();
                right.put(0, Kid::of(cut, count - at));
                inner.merge_if_sparse(child);
                right.merge_if_sparse(0);
                Self::Inner(Arc::new(right))
            }
        }
    }

    /// This node without inner nodes that have a single child above all others.
    pub(super) fn lowered(mut self) -> Self {
        while let Self::Inner(inner) = &mut self
            && inner.len <= 1
        {
            let only = match Arc::get_mut(inner) {
                Some(inner) => std::mem::take(&mut inner.kids[0]),
                None => inner.kids[0].clone(),
            };
            self = only;
        }
        self
    }

    /// One tree of the items of two.
    pub(super) fn join(mut left: Kid, mut right: Kid) -> Self {
        let (low, high) = (left.node.height(), right.node.height());
        if low == high {
            return match weld(&mut left, right) {
                None => left.node,
                Some(right) => Self::over(left, right),
            };
        }
        let (mut tall, next) = if low > high {
            let next = left.node.graft_last(low - high, right);
            (left, next)
        } else {
            let next = right.node.graft_first(high - low, left);
            (right, next)
        };
        match next {
            None => tall.node,
            Some(next) => {
                tall.count = 0;
                tall.key = tall.node.key();
                if let Self::Inner(inner) = &tall.node {
                    tall.count = inner.total();
                }
                Self::over(tall, next)
            }
        }
    }

    /// Puts `kid`, lower by `depth` levels, after all that is here; hands back what did not fit and follows this node.
    fn graft_last(&mut self, depth: usize, kid: Kid) -> Option<Kid> {
        let Self::Inner(inner) = self else {
            return Some(kid);
        };
        let inner = Arc::make_mut(inner);
        let last = inner.len - 1;
        let mut edge = inner.take(last);
        inner.heap -= edge.node.heap();
        let count = kid.count;
        let next = if depth == 1 {
            weld(&mut edge, kid)
        } else {
            edge.node.graft_last(depth - 1, kid)
        };
        if depth > 1 {
            edge.count = edge.count + count - next.as_ref().map_or(0, |next| next.count);
        }
        inner.heap += edge.node.heap();
        inner.put(last, edge);
        inner.add(last + 1, next?, false, true)
    }

    /// Puts `kid`, lower by `depth` levels, before all that is here; hands back what did not fit and follows this node.
    fn graft_first(&mut self, depth: usize, mut kid: Kid) -> Option<Kid> {
        let Self::Inner(inner) = self else {
            return Some(kid);
        };
        let inner = Arc::make_mut(inner);
        let mut edge = inner.take(0);
        inner.heap -= edge.node.heap();
        let count = kid.count;
        let next = if depth == 1 {
            let next = weld(&mut kid, edge);
            edge = kid;
            next
        } else {
            let next = edge.node.graft_first(depth - 1, kid);
            edge.count = edge.count + count - next.as_ref().map_or(0, |next| next.count);
            edge.key = edge.node.key();
            next
        };
        inner.heap += edge.node.heap();
        inner.put(0, edge);
        inner.add(1, next?, true, false)
    }
}

/// Makes one node of two of one height if that has room to spare, or else hands the right one back.
fn weld(left: &mut Kid, right: Kid) -> Option<Kid> {
    if !left.node.could_take(&right.node) {
        return Some(right);
    }
    left.count += right.count;
    left.node.take(right.node);
    None
}
