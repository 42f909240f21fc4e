//! Sets in which an addition beats a removal that has not seen it, and that
//! keep nothing of what was removed [Almeida 2018].
//!
//! All elements share a context, which must come with any of them. Where each
//! element is sent alone, [`crate::Presence`] of each is the better one: it has
//! tombstones, but no context to send along.

use crate::causal::{Causal, DotMap, DotSet, DotStore, dots};

/// See the module's description.
pub type AddWins<T> = Causal<DotMap<T, DotSet>>;

impl<T: Ord + Clone> AddWins<T> {
    /// What to merge so as to add an element.
    pub fn add(&self, replica: u16, element: T) -> Self {
        let dot = self.seen().next(replica);
        let replaced = self.store().get(&element).map(dots).unwrap_or_default();
        let added = [(element, DotSet::from_iter([dot]))];
        Self::new(added.into_iter().collect(), replaced)
    }

    /// What to merge so as to remove an element.
    pub fn remove(&self, element: &T) -> Self {
        let removed = self.store().get(element).map(dots);
        Self::new(DotMap::default(), removed.unwrap_or_default())
    }

    /// What to merge so as to remove all that is here.
    pub fn clear(&self) -> Self {
        Self::new(DotMap::default(), dots(self.store()))
    }

    pub fn contains(&self, element: &T) -> bool {
        self.store().get(element).is_some()
    }

    /// Ascending.
    pub fn elements(&self) -> impl ExactSizeIterator<Item = &T> {
        self.store().iter().map(|(element, _)| element)
    }

    pub fn is_empty(&self) -> bool {
        self.store().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lattice;
    use crate::laws::{self, Draw};
    use std::collections::BTreeSet;

    /// Does something at one of the replicas; says what is to be merged there.
    fn step(replicas: &[AddWins<u64>; 3], at: usize, draw: &mut Draw) -> AddWins<u64> {
        match draw.below(8) {
            0 => replicas[at].clear(),
            1 | 2 => replicas[at].remove(&draw.below(3)),
            3 => replicas[draw.below(3) as usize].clone(),
            _ => replicas[at].add(at as u16, draw.below(3)),
        }
    }

    fn add_wins(draw: &mut Draw) -> AddWins<u64> {
        let mut replicas: [AddWins<u64>; 3] = Default::default();
        for _ in 0..draw.below(9) {
            let at = draw.below(3) as usize;
            let change = step(&replicas, at, draw);
            replicas[at].merge(&change);
        }
        replicas[0].clone()
    }

    #[test]
    fn the_laws_hold() {
        laws::check::<AddWins<u64>>(60, 1, add_wins).unwrap();
    }

    #[test]
    fn an_addition_beats_a_removal_that_has_not_seen_it() {
        let mut a = AddWins::default();
        let first = a.add(1, "milk");
        a.merge(&first);
        let mut b = a.clone();
        let again = b.add(2, "milk");
        let removal = a.remove(&"milk");
        assert!(a.merge(&removal) && a.is_empty());
        assert!(b.merge(&again));
        assert!(a.merge(&b) && !b.merge(&a) && a == b && a.contains(&"milk"));
        let removal = a.remove(&"milk");
        assert!(a.merge(&removal) && !a.merge(&again) && !a.merge(&first));
    }

    /// Parts come late, twice and in any order, and all that add up to the same
    /// set: what a set that remembers every addition and removal would have.
    #[test]
    fn parts_may_come_in_any_order() {
        for seed in 0..200 {
            let mut draw = Draw::new(seed);
            let mut replicas: [AddWins<u64>; 3] = Default::default();
            let mut parts = Vec::new();
            let (mut added, mut removed) = (BTreeSet::new(), BTreeSet::new());
            for _ in 0..12 {
                let at = draw.below(3) as usize;
                let change = step(&replicas, at, &mut draw);
                for (element, set) in change.store().iter() {
                    added.extend(dots(set).into_iter().map(|dot| (dot, *element)));
                }
                let before = dots(replicas[at].store());
                replicas[at].merge(&change);
                let after = dots(replicas[at].store());
                removed.extend(before.into_iter().filter(|dot| !after.contains(dot)));
                parts.push(change);
            }
            let mut all = AddWins::default();
            while !parts.is_empty() {
                let part = parts.swap_remove(draw.below(parts.len() as u64) as usize);
                all.merge(&part);
                if draw.below(3) == 0 {
                    all.merge(&part);
                }
            }
            for replica in &replicas {
                assert!(!all.merge(replica), "seed {seed}");
            }
            let live = added.iter().filter(|(dot, _)| !removed.contains(dot));
            let expected: BTreeSet<u64> = live.map(|(_, element)| *element).collect();
            assert!(all.elements().eq(&expected), "seed {seed}: {all:?}");
        }
    }
}
