//! Pairs in which the higher rank replaces the other value, and values of equal ranks are merged [Anna §VI-C].
//!
//! The rank must be [`Total`]: any two ranks are ordered or equal. With two ranks of which neither is higher, the
//! only choice would be to merge both values under a rank above both, which restores values that one of them had
//! replaced: that is not associative, as [`crate::vector_clock`] shows. The type system excludes such ranks.

use crate::{Lattice, Total};

/// See the module's description. The order is that of merging, if the value is total as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lexicographic<A, B> {
    pub rank: A,
    pub value: B,
}

impl<A: Total, B: Lattice> Lattice for Lexicographic<A, B> {
    fn merge(&mut self, other: &Self) -> bool {
        if self.rank == other.rank {
            return self.value.merge(&other.value);
        }
        let is_higher = other.rank > self.rank;
        if is_higher {
            self.clone_from(other);
        }
        is_higher
    }
}

impl<A: Total, B: Total> Total for Lexicographic<A, B> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::{self, Draw};
    use crate::{Max, Union};

    type Ranked = Lexicographic<Max<u64>, Union<u64>>;
    type Version = Lexicographic<Max<u64>, Max<u64>>;

    fn ranked(draw: &mut Draw) -> Ranked {
        Lexicographic {
            rank: Max(draw.below(3)),
            value: (0..draw.below(3)).map(|_| draw.below(3)).collect(),
        }
    }

    #[test]
    fn the_laws_hold() {
        laws::check::<Lexicographic<Max<u64>, Union<u64>>>(50, 1, ranked).unwrap();
        // Transactions and the commands within them [Anna §VI-C].
        laws::check_total::<Lexicographic<Max<u64>, Max<u64>>>(30, 1, |draw| Version {
            rank: Max(draw.below(3)),
            value: Max(draw.below(3)),
        })
        .unwrap();
    }

    #[test]
    fn a_higher_rank_replaces_and_equal_ones_merge() {
        let of = |rank, elements: &[u64]| Ranked {
            rank: Max(rank),
            value: elements.iter().copied().collect(),
        };
        let mut a = of(1, &[1, 2]);
        assert!(a.merge(&of(1, &[3])) && a == of(1, &[1, 2, 3]));
        assert!(a.merge(&of(2, &[])) && a == of(2, &[]));
        assert!(!a.merge(&of(1, &[9])));
    }
}
