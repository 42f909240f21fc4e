//! The greatest value seen.
//!
//! The state is that value itself, so its type must have a least value: the bottom. If it has none, `Option` adds it.

use crate::{Lattice, Stamp, Total};

/// An ordered type with a least value.
pub trait Least: Ord + Clone {
    const LEAST: Self;
}

macro_rules! least {
    ($($type:ty = $least:expr),*) => {
        $(impl Least for $type {
            const LEAST: Self = $least;
        })*
    };
}

least!(
    bool = false,
    u8 = 0,
    u16 = 0,
    u64 = 0,
    i64 = i64::MIN,
    Stamp = Stamp::ZERO
);

impl<T: Ord + Clone> Least for Option<T> {
    const LEAST: Self = None;
}

impl<A: Least, B: Least> Least for (A, B) {
    const LEAST: Self = (A::LEAST, B::LEAST);
}

/// See the module's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Max<T>(pub T);

impl<T: Least> Default for Max<T> {
    fn default() -> Self {
        Self(T::LEAST)
    }
}

impl<T: Least> Lattice for Max<T> {
    fn merge(&mut self, other: &Self) -> bool {
        let is_greater = other.0 > self.0;
        if is_greater {
            self.0.clone_from(&other.0);
        }
        is_greater
    }
}

impl<T: Least> Total for Max<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::{self, Draw};

    #[test]
    fn the_laws_hold() {
        let number = |draw: &mut Draw| Max(draw.below(9) as i64 - 4);
        laws::check::<Max<i64>>(30, 1, number).unwrap();
        laws::check_total::<Max<i64>>(30, 1, number).unwrap();
        let pair = |draw: &mut Draw| {
            let letter = [None, Some("a"), Some("b")][draw.below(3) as usize];
            Max((draw.below(3), letter))
        };
        laws::check_total::<Max<(u64, Option<&str>)>>(30, 1, pair).unwrap();
    }

    #[test]
    fn the_greater_stays() {
        let mut greatest = Max::<i64>::default();
        assert!(greatest.merge(&Max(-3)) && greatest.merge(&Max(5)));
        assert!(!greatest.merge(&Max(4)) && !greatest.merge(&Max(5)));
        assert_eq!(greatest, Max(5));
    }
}
