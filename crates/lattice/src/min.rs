//! The least value seen.
//!
//! The bottom, no value, is above every value in the order of numbers and below every state in the order of states.

use crate::{Lattice, Total};
use std::cmp::{Ordering, Reverse};

/// See the module's description. Ordered as a lattice: a lesser value is the greater state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Min<T>(Option<T>);

impl<T> Min<T> {
    pub fn of(value: T) -> Self {
        Self(Some(value))
    }

    pub fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }
}

impl<T> Default for Min<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Ord> Ord for Min<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.get().map(Reverse).cmp(&other.get().map(Reverse))
    }
}

impl<T: Ord> PartialOrd for Min<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord + Clone> Lattice for Min<T> {
    fn merge(&mut self, other: &Self) -> bool {
        let is_above = other > self;
        if is_above {
            self.clone_from(other);
        }
        is_above
    }
}

impl<T: Ord + Clone> Total for Min<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws;

    #[test]
    fn the_laws_hold() {
        laws::check::<Min<u64>>(30, 1, |draw| Min::of(draw.below(7))).unwrap();
        laws::check_total::<Min<u64>>(30, 1, |draw| Min::of(draw.below(7))).unwrap();
    }

    #[test]
    fn the_less_stays() {
        let mut least = Min::default();
        assert!(least.merge(&Min::of(5)) && least.merge(&Min::of(3)));
        assert!(!least.merge(&Min::of(4)) && !least.merge(&Min::default()));
        assert_eq!(least.get(), Some(&3));
    }
}
