//! The `k` members with the greatest scores. A member has the greatest score that it was added with.
//!
//! A member that was dropped stays dropped: there are `k` above it, whose scores only rise. That holds while `k` does
//! not grow, since no replica has kept what a greater `k` would need: the merge of two states has the lesser `k`.

use crate::{Lattice, Min};
use std::collections::BTreeMap;

/// See the module's description. Among equal scores the greater member ranks higher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopK<M, S> {
    k: Min<usize>,
    scores: BTreeMap<M, S>,
}

impl<M, S> Default for TopK<M, S> {
    fn default() -> Self {
        Self {
            k: Min::default(),
            scores: BTreeMap::new(),
        }
    }
}

impl<M: Ord + Clone, S: Ord + Clone> TopK<M, S> {
    /// A delta of one member, or of none if `k` is zero.
    pub fn of(k: usize, member: M, score: S) -> Self {
        let scores = (k > 0).then_some((member, score));
        Self {
            k: Min::of(k),
            scores: scores.into_iter().collect(),
        }
    }

    /// Members and scores, the highest first.
    pub fn ranking(&self) -> Vec<(&M, &S)> {
        let mut all: Vec<_> = self.scores.iter().collect();
        all.sort_unstable_by(|one, other| (other.1, other.0).cmp(&(one.1, one.0)));
        all
    }

    /// Drops members that are not among the highest.
    fn cut(&mut self) {
        let Some(k) = self.k.get().copied() else {
            return;
        };
        if self.scores.len() <= k {
            return;
        }
        let low = self.ranking().split_off(k);
        let low: Vec<M> = low.into_iter().map(|(member, _)| member.clone()).collect();
        for member in &low {
            self.scores.remove(member);
        }
    }
}

impl<M: Ord + Clone, S: Ord + Clone> Lattice for TopK<M, S> {
    fn merge(&mut self, other: &Self) -> bool {
        let changed = self.k.merge(&other.k);
        let mut raised = Vec::new();
        for (member, theirs) in &other.scores {
            if self.scores.get(member).is_none_or(|mine| mine < theirs) {
                self.scores.insert(member.clone(), theirs.clone());
                raised.push(member);
            }
        }
        self.cut();
        // A member that was raised and dropped at once is no change.
        changed || raised.iter().any(|member| self.scores.contains_key(member))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::{self, Draw};

    fn top_k(draw: &mut Draw) -> TopK<u64, u64> {
        let mut top = TopK::default();
        for _ in 0..draw.below(6) {
            let k = [0, 1, 2, 2, 3, 3, 3][draw.below(7) as usize];
            top.merge(&TopK::of(k, draw.below(4), draw.below(4)));
        }
        top
    }

    #[test]
    fn the_laws_hold() {
        laws::check::<TopK<u64, u64>>(70, 1, top_k).unwrap();
    }

    #[test]
    fn the_highest_stay_in_whatever_order_they_come() {
        let bids = [("ann", 5), ("bob", 7), ("ann", 9), ("cyd", 7), ("dan", 1)];
        let mut orders = [bids, bids];
        orders[1].reverse();
        for order in orders {
            let mut top = TopK::default();
            for (member, score) in order {
                top.merge(&TopK::of(2, member, score));
            }
            assert_eq!(top.ranking(), [(&"ann", &9), (&"cyd", &7)]);
            assert!(!top.merge(&TopK::of(3, "bob", 7)));
            assert!(top.merge(&TopK::of(1, "bob", 7)) && top.ranking().len() == 1);
        }
    }
}
