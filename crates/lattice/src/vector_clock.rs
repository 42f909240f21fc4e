//! Vector clocks: the number of each replica's events that were seen [Anna §VI-C].
//!
//! They tell whether one state has seen another, or neither has. They cannot be the rank of a pair whose values are
//! merged when neither clock is above the other: such a pair, the paper's one for causal values, is not associative.
//! The test below shows that; values in causal order are [`crate::MultiValue`] and [`crate::Siblings`] here.

use crate::{Map, Max};
use std::cmp::Ordering;

/// See the module's description.
pub type VectorClock<K = u16> = Map<K, Max<u64>>;

impl<K: Ord + Clone> VectorClock<K> {
    /// The number of seen events of a replica.
    pub fn count(&self, replica: &K) -> u64 {
        self.get(replica).map_or(0, |count| count.0)
    }

    /// Counts an event of a replica; only that replica may do this.
    pub fn tick(&mut self, replica: K) -> u64 {
        let count = &mut self.at(replica).0;
        *count += 1;
        *count
    }

    /// `None` if neither has seen all of the other: they are concurrent.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        let has_seen = |a: &Self, b: &Self| b.iter().all(|(k, count)| a.count(k) >= count.0);
        match (has_seen(self, other), has_seen(other, self)) {
            (true, true) => Some(Ordering::Equal),
            (true, false) => Some(Ordering::Greater),
            (false, true) => Some(Ordering::Less),
            (false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::{self, Draw};
    use crate::{Lattice, Union};

    fn clock(draw: &mut Draw) -> VectorClock {
        let mut clock = VectorClock::default();
        for _ in 0..draw.below(5) {
            clock.tick(draw.below(3) as u16);
        }
        clock
    }

    #[test]
    fn the_laws_hold() {
        laws::check::<VectorClock>(50, 1, clock).unwrap();
    }

    #[test]
    fn clocks_compare_as_they_merge() {
        let mut draw = Draw::new(1);
        for _ in 0..500 {
            let (a, b) = (clock(&mut draw), clock(&mut draw));
            let (mut ab, mut ba) = (a.clone(), b.clone());
            let expected = match (ab.merge(&b), ba.merge(&a)) {
                (false, false) => Some(Ordering::Equal),
                (false, true) => Some(Ordering::Greater),
                (true, false) => Some(Ordering::Less),
                (true, true) => None,
            };
            assert_eq!(a.compare(&b), expected, "{a:?} {b:?}");
        }
    }

    /// The paper's pair of a vector clock and a value [Anna §VI-C].
    #[derive(Clone, Debug, Default, PartialEq)]
    struct ClockAndValue {
        clock: VectorClock<char>,
        value: Union<u8>,
    }

    impl Lattice for ClockAndValue {
        fn merge(&mut self, other: &Self) -> bool {
            let old = self.clone();
            match self.clock.compare(&other.clock) {
                Some(Ordering::Greater) => {}
                Some(Ordering::Less) => self.clone_from(other),
                Some(Ordering::Equal) | None => {
                    self.clock.merge(&other.clock);
                    self.value.merge(&other.value);
                }
            }
            *self != old
        }
    }

    /// Writes at {x:1}, {y:1} and {x:2}; the third has seen the first.
    fn write(number: usize) -> ClockAndValue {
        let (replica, count) = [('x', 1), ('y', 1), ('x', 2)][number];
        ClockAndValue {
            clock: [(replica, Max(count))].into_iter().collect(),
            value: [number as u8].into_iter().collect(),
        }
    }

    #[test]
    fn a_clock_and_a_value_are_no_lattice() {
        let verdict =
            laws::check::<ClockAndValue>(12, 1, |draw| write(draw.below(3) as usize)).unwrap_err();
        assert!(verdict.contains("not associative"), "{verdict}");
        let join = |mut a: ClockAndValue, b: &ClockAndValue| {
            a.merge(b);
            a
        };
        let left = join(join(write(0), &write(1)), &write(2));
        let right = join(write(0), &join(write(1), &write(2)));
        assert_eq!(left.clock, right.clock);
        // What the third write has replaced is restored.
        assert_eq!(left.value, [0, 1, 2].into_iter().collect());
        assert_eq!(right.value, [1, 2].into_iter().collect());
    }
}
