//! Maps of lattices: the merge has the keys of both sides, and merges the values of a common key [Anna §VI-B].
//!
//! A key whose value is the bottom differs from an absent key: it says that the key exists.

use crate::Lattice;
use std::collections::BTreeMap;

/// See the module's description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map<K, V>(BTreeMap<K, V>);

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord, V: Lattice> Map<K, V> {
    pub fn get(&self, key: &K) -> Option<&V> {
        self.0.get(key)
    }

    /// The value of a key, which is inserted if absent: callers may only change it upwards.
    pub fn at(&mut self, key: K) -> &mut V {
        self.0.entry(key).or_default()
    }

    /// Keys ascending.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&K, &V)> {
        self.0.iter()
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for Map<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl<K: Ord + Clone, V: Lattice> Lattice for Map<K, V> {
    fn merge(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for (key, theirs) in &other.0 {
            match self.0.get_mut(key) {
                Some(mine) => changed |= mine.merge(theirs),
                None => {
                    self.0.insert(key.clone(), theirs.clone());
                    changed = true;
                }
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::{self, Draw};
    use crate::{Max, Union};

    fn map(draw: &mut Draw) -> Map<u64, Max<u64>> {
        (0..draw.below(4))
            .map(|_| (draw.below(3), Max(draw.below(3))))
            .collect()
    }

    #[test]
    fn the_laws_hold() {
        laws::check::<Map<u64, Max<u64>>>(50, 1, map).unwrap();
    }

    #[test]
    fn the_laws_hold_of_maps_in_maps() {
        laws::check::<Map<u64, Map<u64, Union<u64>>>>(40, 1, |draw| {
            let mut outer = Map::default();
            for _ in 0..draw.below(4) {
                let inner: &mut Map<u64, Union<u64>> = outer.at(draw.below(2));
                let set = inner.at(draw.below(2));
                if draw.below(3) > 0 {
                    set.insert(draw.below(2));
                }
            }
            outer
        })
        .unwrap();
    }

    #[test]
    fn values_of_one_key_are_merged() {
        let mut a: Map<_, _> = [("x", Max(1u64)), ("y", Max(5))].into_iter().collect();
        let b: Map<_, _> = [("y", Max(3)), ("z", Max(0))].into_iter().collect();
        assert!(a.merge(&b) && !a.merge(&b));
        let all: Vec<_> = a.iter().map(|(key, value)| (*key, value.0)).collect();
        assert_eq!(all, [("x", 1), ("y", 5), ("z", 0)]);
        assert_eq!(a.get(&"w"), None);
    }
}
