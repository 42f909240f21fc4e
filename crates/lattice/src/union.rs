//! Sets that only grow. For sets with removals, use a [`crate::Presence`] for each element.

use crate::Lattice;
use std::collections::BTreeSet;

/// See the module's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Union<T>(BTreeSet<T>);

impl<T> Default for Union<T> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

impl<T: Ord> Union<T> {
    /// Returns whether the element was new.
    pub fn insert(&mut self, element: T) -> bool {
        self.0.insert(element)
    }

    pub fn contains(&self, element: &T) -> bool {
        self.0.contains(element)
    }

    /// In ascending order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &T> {
        self.0.iter()
    }

    /// Drops elements that are recorded otherwise: see [`crate::Dots`].
    pub(crate) fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.0.retain(keep);
    }
}

impl<T: Ord> FromIterator<T> for Union<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        Self(elements.into_iter().collect())
    }
}

impl<T: Ord + Clone> Lattice for Union<T> {
    fn merge(&mut self, other: &Self) -> bool {
        let before = self.0.len();
        for element in &other.0 {
            if !self.0.contains(element) {
                self.0.insert(element.clone());
            }
        }
        self.0.len() > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws;

    #[test]
    fn the_laws_hold() {
        laws::check::<Union<u64>>(40, 1, |draw| {
            (0..draw.below(4)).map(|_| draw.below(5)).collect()
        })
        .unwrap();
    }

    #[test]
    fn both_sides_are_kept() {
        let mut a: Union<_> = ["a", "b"].into_iter().collect();
        let b: Union<_> = ["b", "c"].into_iter().collect();
        assert!(a.merge(&b) && !a.merge(&b));
        assert_eq!(a.iter().copied().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert!(!a.insert("a") && a.contains(&"c"));
    }
}
