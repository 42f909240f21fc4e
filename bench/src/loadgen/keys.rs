//! Key numbers, the keys they become, and which of them is drawn next.

use super::zipf::ScrambledZipfian;
use rufous_base::rng::Rng;

/// Every key ends in the key number as this many decimal digits: 8 B keys are the number alone.
pub const DIGITS: usize = 8;
/// Key numbers stay below this.
pub const MAX_KEYS: u64 = 100_000_000;

/// `number` as fixed-width decimal digits.
pub fn digits(number: u64) -> [u8; DIGITS] {
    debug_assert!(number < MAX_KEYS);
    let mut text = [b'0'; DIGITS];
    let mut rest = number as u32;
    for slot in text.iter_mut().rev() {
        *slot = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    text
}

/// What every key begins with, before its digits, so that keys are `size` bytes long.
pub fn prefix(size: usize) -> Vec<u8> {
    vec![b'k'; size.saturating_sub(DIGITS)]
}

/// Chooses key numbers.
#[derive(Clone, Debug)]
pub enum Keys {
    /// Uniform in `0..n`.
    Uniform(u64),
    /// Scrambled zipfian in `0..n`.
    Zipfian(ScrambledZipfian, u64),
    /// Uniform over a list, for keys that one worker owns.
    Listed(Vec<u32>),
}

impl Keys {
    pub fn next(&self, rng: &mut Rng) -> u64 {
        match self {
            Self::Uniform(n) => rng.below(*n),
            Self::Zipfian(zipf, n) => zipf.next(rng, *n),
            Self::Listed(list) => u64::from(list[rng.below(list.len() as u64) as usize]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_the_padded_decimal() {
        for number in [0, 1, 9, 10, 12_345, 999_999, 99_999_999] {
            assert_eq!(digits(number).to_vec(), format!("{number:08}").into_bytes());
        }
    }

    #[test]
    fn draws_stay_in_range() {
        let mut rng = Rng::new(1);
        let zipf = Keys::Zipfian(ScrambledZipfian::new(50, 0.9), 50);
        let listed = Keys::Listed(vec![3, 5, 8]);
        for _ in 0..1_000 {
            assert!(Keys::Uniform(50).next(&mut rng) < 50);
            assert!(zipf.next(&mut rng) < 50);
            assert!([3, 5, 8].contains(&listed.next(&mut rng)));
        }
    }
}
