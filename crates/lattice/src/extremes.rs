//! The least and the greatest of what was seen.

use crate::{Lattice, Max, Min, Product};

/// See the module's description.
pub type Extremes<T> = Product<Min<T>, Max<Option<T>>>;

impl<T: Ord + Clone> Extremes<T> {
    /// Returns whether it is less or greater than all before.
    pub fn see(&mut self, value: T) -> bool {
        self.merge(&Product(Min::of(value.clone()), Max(Some(value))))
    }

    pub fn least(&self) -> Option<&T> {
        self.0.get()
    }

    pub fn greatest(&self) -> Option<&T> {
        self.1.0.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws;

    #[test]
    fn the_laws_hold() {
        laws::check::<Extremes<u64>>(40, 1, |draw| {
            let mut extremes = Extremes::default();
            for _ in 0..draw.below(3) {
                extremes.see(draw.below(5));
            }
            extremes
        })
        .unwrap();
    }

    #[test]
    fn both_ends_are_kept() {
        let mut extremes = Extremes::default();
        assert_eq!(extremes.least(), None);
        assert!(extremes.see(5) && extremes.see(7) && extremes.see(-1) && !extremes.see(3));
        assert_eq!(
            (extremes.least(), extremes.greatest()),
            (Some(&-1), Some(&7))
        );
    }
}
