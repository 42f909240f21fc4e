//! Registers of any value in which the last write wins: the value with the
//! greater stamp. Of two values with one stamp the greater wins, so that the
//! order is total whatever clocks do; a deletion is a write of nothing.
//!
//! [`crate::Register`] is this of byte strings, with what was added since.

use crate::{Lexicographic, Max, Stamp};

/// See the module's description.
pub type LastWrite<V> = Lexicographic<Max<Stamp>, Max<Option<V>>>;

impl<V> LastWrite<V> {
    pub fn written(stamp: Stamp, value: V) -> Self {
        Self {
            rank: Max(stamp),
            value: Max(Some(value)),
        }
    }

    pub fn deleted(stamp: Stamp) -> Self {
        Self {
            rank: Max(stamp),
            value: Max(None),
        }
    }

    pub fn stamp(&self) -> Stamp {
        self.rank.0
    }

    pub fn get(&self) -> Option<&V> {
        self.value.0.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lattice;
    use crate::laws::{self, Draw};

    fn stamp(time: u64, replica: u16) -> Stamp {
        Stamp {
            time,
            replica,
            step: 0,
        }
    }

    fn last_write(draw: &mut Draw) -> LastWrite<u64> {
        let stamp = stamp(draw.below(3), draw.below(2) as u16);
        match draw.below(3) {
            0 => LastWrite::deleted(stamp),
            value => LastWrite::written(stamp, value),
        }
    }

    #[test]
    fn the_laws_hold() {
        laws::check::<LastWrite<u64>>(40, 1, last_write).unwrap();
        laws::check_total::<LastWrite<u64>>(40, 1, last_write).unwrap();
    }

    #[test]
    fn the_later_wins_whoever_comes_first() {
        let early = LastWrite::written(stamp(1, 9), "early");
        let late = LastWrite::written(stamp(2, 1), "late");
        let (mut a, mut b) = (early, late);
        assert!(a.merge(&late) && !b.merge(&early));
        assert_eq!((a.get(), a.stamp()), (Some(&"late"), stamp(2, 1)));
        assert_eq!(a, b);
        assert!(a.merge(&LastWrite::deleted(stamp(3, 1))) && a.get().is_none());
    }
}
