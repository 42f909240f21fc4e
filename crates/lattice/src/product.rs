//! Pairs whose sides are merged separately.

use crate::Lattice;

/// See the module's description.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Product<A, B>(pub A, pub B);

impl<A: Lattice, B: Lattice> Lattice for Product<A, B> {
    fn merge(&mut self, other: &Self) -> bool {
        // Both are merged, whatever the first returns.
        let first = self.0.merge(&other.0);
        self.1.merge(&other.1) || first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Max, laws};

    #[test]
    fn the_laws_hold() {
        laws::check::<Product<Max<u64>, Max<bool>>>(30, 1, |draw| {
            Product(Max(draw.below(4)), Max(draw.below(2) == 0))
        })
        .unwrap();
    }

    #[test]
    fn both_sides_merge() {
        let mut a = Product(Max(5u64), Max(1u64));
        assert!(a.merge(&Product(Max(6), Max(2))));
        assert!(!a.merge(&Product(Max(0), Max(2))));
        assert_eq!(a, Product(Max(6), Max(2)));
    }
}
