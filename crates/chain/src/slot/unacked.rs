//! Writes of a slot that the members behind this node have not acknowledged.

use crate::message::Item;
use std::collections::{VecDeque, vec_deque};

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub(super) struct Unacked {
    items: VecDeque<Item>,
    bytes: usize,
}

impl Unacked {
    pub(super) fn push(&mut self, item: Item) {
        self.bytes += item.effect.len();
        self.items.push_back(item);
    }

    /// The writes up to this one are acknowledged.
    pub(super) fn settle(&mut self, acked: u64) {
        while let Some(item) = self.items.pop_front_if(|item| item.seq <= acked) {
            self.bytes -= item.effect.len();
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn iter(&self) -> vec_deque::Iter<'_, Item> {
        self.items.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// The size of their effects.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_size_is_that_of_the_writes_that_it_has() {
        let mut unacked = Unacked::default();
        for (seq, size) in [(4, 10), (5, 200), (6, 3)] {
            let effect = vec![0; size].into();
            unacked.push(Item { seq, effect });
        }
        assert_eq!(unacked.bytes(), 213);
        unacked.settle(3);
        unacked.settle(5);
        assert_eq!((unacked.bytes(), unacked.len()), (3, 1));
        unacked.clear();
        assert_eq!((unacked.bytes(), unacked.iter().count()), (0, 0));
    }
}
