//! The registers of a sketch, one byte each: what sketches are merged in.

use super::{Observation, REGISTERS, estimate};

/// A lattice: the join takes the higher rank of every register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers(Box<[u8]>);

impl Default for Registers {
    /// The bottom element: nothing was observed.
    fn default() -> Self {
        Self(vec![0; REGISTERS].into())
    }
}

impl Registers {
    /// Returns whether the register was lower.
    #[inline]
    pub fn raise(&mut self, seen: Observation) -> bool {
        let register = &mut self.0[seen.index];
        let lower = *register < seen.rank;
        *register = seen.rank.max(*register);
        lower
    }

    /// Joins another sketch's registers; returns whether any was lower.
    pub fn merge(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for (mine, &theirs) in self.0.iter_mut().zip(&other.0) {
            changed |= *mine < theirs;
            *mine = theirs.max(*mine);
        }
        changed
    }

    pub fn count(&self) -> u64 {
        let mut histogram = [0; 64];
        for &rank in &self.0 {
            // Registers have 6 bits wherever they come from.
            histogram[usize::from(rank & 63)] += 1;
        }
        estimate::estimate(&histogram)
    }

    /// The ranks, in the order of registers.
    pub fn ranks(&self) -> &[u8] {
        &self.0
    }

    /// What has to be observed to get these registers from none, in their order.
    pub fn observations(&self) -> impl Iterator<Item = Observation> {
        let ranks = self.0.iter().copied().enumerate();
        ranks
            .filter(|(_, rank)| *rank > 0)
            .map(|(index, rank)| Observation { index, rank })
    }
}
