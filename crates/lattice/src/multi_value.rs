//! Registers in causal order: a write replaces the values that its writer has read, and is concurrent with the
//! others.
//!
//! [`crate::Siblings`] is the same for byte strings, with stamps as dots: the values of keys with causal order.

use crate::causal::{Causal, DotFun, dots};
use crate::{Dot, Dots};

/// See the module's description.
pub type MultiValue<V> = Causal<DotFun<V>>;

impl<V: Ord + Clone> MultiValue<V> {
    /// The delta of a write that replaces all values here.
    pub fn write(&self, replica: u16, value: V) -> Self {
        self.write_after(self.seen(), replica, value)
    }

    /// The delta of a write that replaces what a reader with the context `read` has seen.
    pub fn write_after(&self, read: &Dots, replica: u16, value: V) -> Self {
        let dot = self.seen().next(replica);
        Self::new([(dot, value)].into_iter().collect(), self.replaced(read))
    }

    /// The delta that removes all values here.
    pub fn clear(&self) -> Self {
        Self::new(DotFun::default(), dots(self.store()))
    }

    /// In the order of their writes' dots.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &V> {
        self.store().iter().map(|(_, value)| value)
    }

    fn replaced(&self, read: &Dots) -> Vec<Dot> {
        let mut all = dots(self.store());
        all.retain(|dot| read.contains(*dot));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lattice;
    use crate::laws::{self, Draw};

    /// A state at one of three replicas that exchange writes.
    fn multi_value(draw: &mut Draw) -> MultiValue<u64> {
        let mut replicas: [MultiValue<u64>; 3] = Default::default();
        for _ in 0..draw.below(8) {
            let (at, from) = (draw.below(3) as usize, draw.below(3) as usize);
            let change = match draw.below(4) {
                0 => replicas[at].clear(),
                1 => replicas[from].clone(),
                _ => replicas[at].write(at as u16, draw.below(4)),
            };
            replicas[at].merge(&change);
        }
        replicas[0].clone()
    }

    #[test]
    fn the_laws_hold() {
        laws::check::<MultiValue<u64>>(60, 1, multi_value).unwrap();
    }

    #[test]
    fn writes_that_have_not_seen_each_other_stay_beside_each_other() {
        let (mut a, mut b) = (MultiValue::default(), MultiValue::default());
        let (one, two) = (a.write(1, "one"), b.write(2, "two"));
        a.merge(&one);
        b.merge(&two);
        let read = b.seen().clone();
        assert!(a.merge(&b) && b.merge(&a) && a == b);
        assert_eq!(a.values().collect::<Vec<_>>(), [&"one", &"two"]);
        // A writer that has read only one value replaces only that.
        let three = b.write_after(&read, 2, "three");
        assert!(b.merge(&three));
        assert_eq!(b.values().collect::<Vec<_>>(), [&"one", &"three"]);
        let all = b.write(2, "all");
        assert!(a.merge(&all) && a.merge(&b) && !a.merge(&three));
        assert_eq!(a.values().collect::<Vec<_>>(), [&"all"]);
        let nothing = a.clear();
        assert!(a.merge(&nothing) && !a.merge(&all) && a.values().len() == 0);
    }
}
