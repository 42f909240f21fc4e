//! A set of small numbers.

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn add(&mut self, number: usize) {
        let at = number / 64;
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] |= 1 << (number % 64);
    }

    pub(super) fn add_all(&mut self, other: &Bits) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine |= theirs;
        }
    }

    pub(super) fn has(&self, number: usize) -> bool {
        { self.0.get(number / 64) }.is_some_and(|word| word & 1 << (number % 64) != 0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        let of = |(at, word): (usize, &u64)| {
            let word = *word;
            (0..64)
                .filter(move |bit| word & 1 << bit != 0)
                .map(move |bit| at * 64 + bit)
        };
        self.0
            .iter()
            .enumerate()
            .filter(|(_, word)| **word != 0)
            .flat_map(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_were_added_are_there() {
        let (mut some, mut others) = (Bits::default(), Bits::default());
        [3, 64, 200].into_iter().for_each(|number| some.add(number));
        [3, 1000].into_iter().for_each(|number| others.add(number));
        some.add_all(&others);
        assert!(some.has(1000) && !some.has(1001) && !some.has(65) && !some.has(9999));
        assert_eq!(some.iter().collect::<Vec<_>>(), [3, 64, 200, 1000]);
    }
}
