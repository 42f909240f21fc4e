//! Whether something has ever been so. There is no way back: what can be taken
//! back has stamps or dots.

use crate::{Lattice, Total};

/// See the module's description.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Or(pub bool);

impl Lattice for Or {
    fn merge(&mut self, other: &Self) -> bool {
        let is_new = other.0 && !self.0;
        self.0 |= other.0;
        is_new
    }
}

impl Total for Or {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws;

    #[test]
    fn the_laws_hold() {
        laws::check::<Or>(8, 1, |draw| Or(draw.below(2) == 0)).unwrap();
        laws::check_total::<Or>(8, 1, |draw| Or(draw.below(2) == 0)).unwrap();
    }

    #[test]
    fn once_is_for_ever() {
        let mut or = Or::default();
        assert!(!or.merge(&Or(false)) && or.merge(&Or(true)));
        assert!(!or.merge(&Or(false)) && or.0);
    }
}
