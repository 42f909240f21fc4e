//! HyperLogLog's registers: of each the greatest rank that was seen
//! [Flajolet 2007].
//!
//! Bytes side by side, which merge many at a time; it states the same as a
//! [`crate::Map`] of registers to [`crate::Max`] that leaves out zeros. How
//! many elements made these ranks is for others to estimate.

use crate::Lattice;

/// See the module's description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HyperLogLog {
    /// By register; the last one is not zero.
    ranks: Vec<u8>,
}

impl HyperLogLog {
    pub fn rank(&self, register: u16) -> u8 {
        let rank = self.ranks.get(usize::from(register));
        rank.copied().unwrap_or_default()
    }

    /// Returns whether this rank is greater than all before.
    pub fn raise(&mut self, register: u16, rank: u8) -> bool {
        let is_greater = rank > self.rank(register);
        if is_greater {
            let at = usize::from(register);
            self.ranks.resize(self.ranks.len().max(at + 1), 0);
            self.ranks[at] = rank;
        }
        is_greater
    }
}

impl Lattice for HyperLogLog {
    fn merge(&mut self, other: &Self) -> bool {
        let mut changed = other.ranks.len() > self.ranks.len();
        if changed {
            self.ranks.resize(other.ranks.len(), 0);
        }
        for (mine, theirs) in self.ranks.iter_mut().zip(&other.ranks) {
            changed |= theirs > mine;
            *mine = (*mine).max(*theirs);
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::{self, Draw};
    use crate::{Map, Max};

    fn registers(draw: &mut Draw) -> HyperLogLog {
        let mut registers = HyperLogLog::default();
        for _ in 0..draw.below(4) {
            registers.raise(draw.below(4) as u16, draw.below(4) as u8);
        }
        registers
    }

    #[test]
    fn the_laws_hold() {
        laws::check::<HyperLogLog>(60, 1, registers).unwrap();
    }

    #[test]
    fn registers_are_a_map_of_maxima() {
        laws::check_model::<HyperLogLog, Map<u16, Max<u8>>>(120, 1, registers, |registers| {
            let ranks = (0..4).map(|register| (register, Max(registers.rank(register))));
            ranks.filter(|(_, rank)| rank.0 > 0).collect()
        })
        .unwrap();
    }

    #[test]
    fn the_greatest_rank_stays() {
        let mut registers = HyperLogLog::default();
        assert!(registers.raise(16383, 3) && !registers.raise(16383, 2));
        assert!(!registers.raise(5, 0) && registers.rank(5) == 0);
        assert_eq!((registers.rank(16383), registers.rank(16384)), (3, 0));
    }
}
