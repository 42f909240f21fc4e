//! Dots, which name single updates, and causal contexts: which updates were
//! seen [DVV 2014].
//!
//! A context is a set of dots that only grows. A replica's dots mostly arrive in order, so a context keeps for each
//! replica the number up to which all were seen, and separately the dots that arrived early: so partial states can be
//! sent, in any order [Almeida 2018].

use crate::{Lattice, Union, VectorClock};

/// The update of a replica with this number, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dot {
    pub replica: u16,
    pub number: u64,
}

/// See the module's description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dots {
    up_to: VectorClock,
    /// No dot here is covered by `up_to` or directly follows it: equal sets are equal states.
    apart: Union<Dot>,
}

impl Dots {
    pub fn contains(&self, dot: Dot) -> bool {
        dot.number <= self.up_to.count(&dot.replica) || self.apart.contains(&dot)
    }

    /// Returns whether the dot was new.
    pub fn insert(&mut self, dot: Dot) -> bool {
        debug_assert!(dot.number > 0);
        let is_new = !self.contains(dot);
        if is_new {
            self.apart.insert(dot);
            self.settle();
        }
        is_new
    }

    /// The dot of the next update of a replica that has this context.
    pub fn next(&self, replica: u16) -> Dot {
        let own = self.apart.iter().filter(|dot| dot.replica == replica);
        let last = own.map(|dot| dot.number).max();
        let number = last.unwrap_or_else(|| self.up_to.count(&replica)) + 1;
        Dot { replica, number }
    }

    /// Moves dots that directly follow `up_to` into it.
    fn settle(&mut self) {
        // Dots ascend by number within a replica, so one pass suffices.
        let up_to = &mut self.up_to;
        self.apart.retain(|dot| {
            let count = up_to.count(&dot.replica);
            if dot.number == count + 1 {
                up_to.tick(dot.replica);
            }
            dot.number > count + 1
        });
    }
}

impl FromIterator<Dot> for Dots {
    fn from_iter<I: IntoIterator<Item = Dot>>(dots: I) -> Self {
        let mut all = Self {
            up_to: VectorClock::default(),
            apart: dots.into_iter().collect(),
        };
        all.settle();
        all
    }
}

impl Lattice for Dots {
    fn merge(&mut self, other: &Self) -> bool {
        // A higher `up_to` always adds a dot: the one that directly follows is never in `apart`.
        let mut changed = self.up_to.merge(&other.up_to);
        for dot in other.apart.iter() {
            changed |= !self.contains(*dot) && self.apart.insert(*dot);
        }
        if changed {
            self.settle();
        }
        changed
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::laws::{self, Draw};

    pub(crate) fn dot(replica: u16, number: u64) -> Dot {
        Dot { replica, number }
    }

    fn dots(draw: &mut Draw) -> Dots {
        (0..draw.below(6))
            .map(|_| dot(draw.below(2) as u16, 1 + draw.below(4)))
            .collect()
    }

    #[test]
    fn the_laws_hold() {
        laws::check::<Dots>(60, 1, dots).unwrap();
    }

    #[test]
    fn a_context_is_a_set_of_dots() {
        laws::check_model::<Dots, Union<Dot>>(120, 1, dots, |dots| {
            let all = (0..2).flat_map(|replica| (1..=4).map(move |number| dot(replica, number)));
            all.filter(|dot| dots.contains(*dot)).collect()
        })
        .unwrap();
    }

    #[test]
    fn what_comes_before_its_turn_waits_apart() {
        let mut seen: Dots = [dot(1, 3), dot(1, 4)].into_iter().collect();
        assert!(seen.contains(dot(1, 3)) && !seen.contains(dot(1, 2)));
        assert_eq!((seen.apart.iter().len(), seen.next(1)), (2, dot(1, 5)));
        assert!(seen.insert(dot(1, 1)) && seen.insert(dot(1, 2)) && !seen.insert(dot(1, 4)));
        assert_eq!((seen.apart.iter().len(), seen.next(1)), (0, dot(1, 5)));
        assert_eq!(seen.next(2), dot(2, 1));
    }
}
