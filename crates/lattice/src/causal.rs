//! States in causal order: a store of dots, and the context of all dots that were seen [Almeida 2018].
//!
//! A merge keeps a dot that both stores have, and one that only one of them has if the other side has not seen it; a
//! dot that the other side has seen and does not have was removed or replaced there. So a removed value leaves
//! nothing but its dot in the context, which has one number for each replica.
//!
//! An operation returns a partial state, to be merged into this state and into others. The dots of a store are always
//! in its context.

use crate::{Dot, Dots, Lattice};
use std::collections::{BTreeMap, BTreeSet};

/// A store that has dots, directly or in nested stores.
pub trait DotStore: Clone + Default {
    /// Keeps and takes over dots as the module's description states; returns whether that changed this store.
    fn join(&mut self, seen: &Dots, other: &Self, other_seen: &Dots) -> bool;

    fn is_empty(&self) -> bool;

    /// Shows every dot.
    fn each_dot(&self, see: &mut impl FnMut(Dot));
}

/// See the module's description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Causal<S> {
    store: S,
    seen: Dots,
}

impl<S: DotStore> Causal<S> {
    /// A store that has seen its own dots, and removed ones.
    pub fn new(store: S, seen: impl IntoIterator<Item = Dot>) -> Self {
        let mut dots = dots(&store);
        dots.extend(seen);
        Self {
            store,
            seen: dots.into_iter().collect(),
        }
    }

    pub fn store(&self) -> &S {
        &self.store
    }

    pub fn seen(&self) -> &Dots {
        &self.seen
    }
}

/// All dots of a store.
pub fn dots(store: &impl DotStore) -> Vec<Dot> {
    let mut all = Vec::new();
    store.each_dot(&mut |dot| all.push(dot));
    all
}

impl<S: DotStore> Lattice for Causal<S> {
    fn merge(&mut self, other: &Self) -> bool {
        let changed = self.store.join(&self.seen, &other.store, &other.seen);
        self.seen.merge(&other.seen) || changed
    }
}

/// A set of dots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DotSet(BTreeSet<Dot>);

impl FromIterator<Dot> for DotSet {
    fn from_iter<I: IntoIterator<Item = Dot>>(dots: I) -> Self {
        Self(dots.into_iter().collect())
    }
}

impl DotStore for DotSet {
    fn join(&mut self, seen: &Dots, other: &Self, other_seen: &Dots) -> bool {
        let before = self.0.len();
        self.0
            .retain(|dot| other.0.contains(dot) || !other_seen.contains(*dot));
        let mut changed = self.0.len() < before;
        for dot in other.0.iter().filter(|dot| !seen.contains(**dot)) {
            changed |= self.0.insert(*dot);
        }
        changed
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn each_dot(&self, see: &mut impl FnMut(Dot)) {
        self.0.iter().for_each(|dot| see(*dot));
    }
}

/// A map from dots to the values that their updates have written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DotFun<V>(BTreeMap<Dot, V>);

impl<V> DotFun<V> {
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Dot, &V)> {
        self.0.iter().map(|(dot, value)| (*dot, value))
    }
}

impl<V> Default for DotFun<V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<V> FromIterator<(Dot, V)> for DotFun<V> {
    fn from_iter<I: IntoIterator<Item = (Dot, V)>>(written: I) -> Self {
        Self(written.into_iter().collect())
    }
}

impl<V: Ord + Clone> DotStore for DotFun<V> {
    fn join(&mut self, seen: &Dots, other: &Self, other_seen: &Dots) -> bool {
        let before = self.0.len();
        self.0
            .retain(|dot, _| other.0.contains_key(dot) || !other_seen.contains(*dot));
        let mut changed = self.0.len() < before;
        for (dot, theirs) in &other.0 {
            match self.0.get_mut(dot) {
                // Two values of one dot do not occur; the order is total nevertheless.
                Some(mine) if *mine < *theirs => mine.clone_from(theirs),
                None if !seen.contains(*dot) => {
                    self.0.insert(*dot, theirs.clone());
                }
                _ => continue,
            }
            changed = true;
        }
        changed
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn each_dot(&self, see: &mut impl FnMut(Dot)) {
        self.0.keys().for_each(|dot| see(*dot));
    }
}

/// A map of stores. A key whose store has no dots is absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DotMap<K, S>(BTreeMap<K, S>);

impl<K: Ord, S: DotStore> DotMap<K, S> {
    pub fn get(&self, key: &K) -> Option<&S> {
        self.0.get(key)
    }

    /// Keys ascending.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&K, &S)> {
        self.0.iter()
    }
}

impl<K, S> Default for DotMap<K, S> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord, S: DotStore> FromIterator<(K, S)> for DotMap<K, S> {
    fn from_iter<I: IntoIterator<Item = (K, S)>>(stores: I) -> Self {
        let stores = stores.into_iter();
        Self(stores.filter(|(_, store)| !store.is_empty()).collect())
    }
}

impl<K: Ord + Clone, S: DotStore> DotStore for DotMap<K, S> {
    fn join(&mut self, seen: &Dots, other: &Self, other_seen: &Dots) -> bool {
        let nothing = S::default();
        let mut changed = false;
        self.0.retain(|key, mine| {
            let theirs = other.0.get(key).unwrap_or(&nothing);
            changed |= mine.join(seen, theirs, other_seen);
            !mine.is_empty()
        });
        for (key, theirs) in &other.0 {
            // A key that is in this store was joined already, and perhaps removed just now: this side has seen what
            // it had.
            if !self.0.contains_key(key) {
                let mut mine = S::default();
                if mine.join(seen, theirs, other_seen) {
                    self.0.insert(key.clone(), mine);
                    changed = true;
                }
            }
        }
        changed
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn each_dot(&self, see: &mut impl FnMut(Dot)) {
        self.0.values().for_each(|store| store.each_dot(see));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dots::tests::dot;
    use crate::laws::{self, Draw};

    /// Dots that were seen; any of them may be in a store.
    fn seen(draw: &mut Draw) -> Vec<Dot> {
        (0..draw.below(5))
            .map(|_| dot(draw.below(2) as u16, 1 + draw.below(3)))
            .collect()
    }

    fn set(draw: &mut Draw) -> Causal<DotSet> {
        let seen = seen(draw);
        let store = seen.iter().filter(|_| draw.below(2) == 0).copied();
        Causal::new(store.collect(), seen.clone())
    }

    #[test]
    fn the_laws_hold() {
        laws::check::<Causal<DotSet>>(60, 1, set).unwrap();
        laws::check::<Causal<DotFun<u64>>>(60, 1, |draw| {
            let seen = seen(draw);
            let store = seen.iter().filter(|dot| dot.number != 2);
            Causal::new(
                store.map(|dot| (*dot, draw.below(2))).collect(),
                seen.clone(),
            )
        })
        .unwrap();
        laws::check::<Causal<DotMap<u64, DotMap<u64, DotSet>>>>(60, 1, |draw| {
            let sets: Vec<_> = (0..4).map(|_| set(draw)).collect();
            let inner = |two: &[Causal<DotSet>]| {
                let sets = two.iter().map(|set| set.store().clone());
                (0..).zip(sets).collect()
            };
            let store = (0..).zip(sets.chunks(2).map(inner)).collect();
            Causal::new(store, [dot(0, 1)])
        })
        .unwrap();
    }

    #[test]
    fn what_was_seen_and_is_not_there_was_removed() {
        let of = |dots: &[Dot], seen: &[Dot]| {
            Causal::<DotSet>::new(dots.iter().copied().collect(), seen.iter().copied())
        };
        let mut a = of(&[dot(1, 1), dot(1, 2)], &[]);
        let b = of(&[dot(2, 1)], &[dot(1, 1)]);
        assert!(a.merge(&b) && !a.merge(&b));
        assert_eq!(dots(a.store()), [dot(1, 2), dot(2, 1)]);
        // A late message restores nothing.
        assert!(!a.merge(&of(&[dot(1, 1)], &[])));
    }
}
