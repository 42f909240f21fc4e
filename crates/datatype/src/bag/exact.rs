//! Exact sums of doubles. Adding doubles one by one rounds, so the result
//! depends on the order; here every sum is kept exactly, as
//! one large integer in units of the smallest double, and is rounded only
//! when it is read.
//!
//! The integer is two's complement. Doubles reach 2098 bits, and 2^64 of them
//! add 64 more; 35 words of 64 bits have room for both and the sign.

/// Words of the integer.
pub const WORDS: usize = 35;

/// What one unit is worth, as a power of two.
const UNIT: i32 = -1074;

/// A sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exact([u64; WORDS]);

impl Exact {
    pub const ZERO: Exact = Exact([0; WORDS]);

    fn is_negative(&self) -> bool {
        self.0[WORDS - 1] >> 63 == 1
    }

    /// Adds a finite double.
    pub fn add(&mut self, value: f64) {
        let bits = value.to_bits();
        let exponent = (bits >> 52) & 0x7ff;
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, shift) = match exponent {
            0 => (fraction, 0),
            _ => (fraction | 1 << 52, exponent as usize - 1),
        };
        let wide = u128::from(mantissa) << (shift % 64);
        let parts = [wide as u64, (wide >> 64) as u64];
        let at = shift / 64;
        let mut carry = false;
        for (index, word) in self.0.iter_mut().enumerate().skip(at) {
            let part = parts.get(index - at).copied().unwrap_or(0);
            if index - at >= parts.len() && !carry {
                break;
            }
            (*word, carry) = match value.is_sign_negative() {
                true => word.borrowing(part, carry),
                false => word.carrying(part, carry),
            };
        }
    }

    /// The nearest double; infinite where the sum is beyond them.
    pub fn to_f64(self) -> f64 {
        self.divided(1).0
    }

    /// The double nearest to the quotient, and whether it is the quotient.
    /// `by` is not zero.
    pub fn divided(self, by: u64) -> (f64, bool) {
        let negative = self.is_negative();
        let mut words = [0; WORDS + 2];
        // Two words below the unit: bits enough for a mantissa of any quotient.
        words[2..].copy_from_slice(&self.magnitude());
        let mut rest = 0;
        for word in words.iter_mut().rev() {
            let whole = u128::from(rest) << 64 | u128::from(*word);
            *word = (whole / u128::from(by)) as u64;
            rest = (whole % u128::from(by)) as u64;
        }
        let (magnitude, exact) = rounded(&words, UNIT - 128, rest != 0);
        (if negative { -magnitude } else { magnitude }, exact)
    }

    fn magnitude(&self) -> [u64; WORDS] {
        let mut words = self.0;
        if self.is_negative() {
            let mut carry = true;
            for word in &mut words {
                (*word, carry) = (!*word).carrying(0, carry);
            }
        }
        words
    }

    /// Appends the words that say something: the number of those left out
    /// below, which are zero, then those up to where only the sign follows.
    pub fn write(&self, out: &mut Vec<u8>) {
        let first = self.0.iter().position(|&word| word != 0);
        let first = first.unwrap_or(WORDS);
        let sign = if self.is_negative() { u64::MAX } else { 0 };
        let mut end = WORDS;
        while end > first && self.0[end - 1] == sign && top_is(self.0[first..end - 1].last(), sign)
        {
            end -= 1;
        }
        out.push(first as u8);
        for word in &self.0[first..end] {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// Reads what [`Exact::write`] wrote. Other bytes give some sum, or none.
    pub fn read(bytes: &[u8]) -> Option<Exact> {
        let (&first, rest) = bytes.split_first()?;
        let (words, odd) = rest.as_chunks::<8>();
        let first = usize::from(first);
        let end = first + words.len();
        if end > WORDS || !odd.is_empty() {
            return None;
        }
        let mut sum = Exact::ZERO;
        for (into, word) in sum.0[first..end].iter_mut().zip(words) {
            *into = u64::from_le_bytes(*word);
        }
        if words.last().is_some_and(|word| word[7] >> 7 == 1) {
            sum.0[end..].fill(u64::MAX);
        }
        Some(sum)
    }
}

/// Whether the word below says by its top bit that words of `sign` follow.
fn top_is(below: Option<&u64>, sign: u64) -> bool {
    below.map_or(sign == 0, |word| (word >> 63 == 1) == (sign == u64::MAX))
}

trait Carry: Sized {
    fn carrying(self, other: Self, carry: bool) -> (Self, bool);
    fn borrowing(self, other: Self, borrow: bool) -> (Self, bool);
}

impl Carry for u64 {
    #[inline]
    fn carrying(self, other: u64, carry: bool) -> (u64, bool) {
        let (sum, first) = self.overflowing_add(other);
        let (sum, second) = sum.overflowing_add(u64::from(carry));
        (sum, first || second)
    }

    #[inline]
    fn borrowing(self, other: u64, borrow: bool) -> (u64, bool) {
        let (difference, first) = self.overflowing_sub(other);
        let (difference, second) = difference.overflowing_sub(u64::from(borrow));
        (difference, first || second)
    }
}

/// The double nearest to an integer in units of 2^`unit`, ties to even, and
/// whether it is exact; `more`: there are further bits below the last one.
fn rounded(words: &[u64], unit: i32, more: bool) -> (f64, bool) {
    let Some(top) = words.iter().rposition(|&word| word != 0) else {
        return (0.0, !more);
    };
    let length = top as i32 * 64 + 64 - words[top].leading_zeros() as i32;
    // The last bit that a double of this size has.
    let lowest = (length - 53).max(UNIT - unit);
    let bit = |at: i32| at >= 0 && words[at as usize / 64] >> (at % 64) & 1 == 1;
    let mut mantissa = 0_u64;
    for at in (lowest..length.max(lowest)).rev() {
        mantissa = mantissa << 1 | u64::from(bit(at));
    }
    let half = bit(lowest - 1);
    let below = more || has_bits_below(words, lowest - 1);
    if half && (below || mantissa & 1 == 1) {
        mantissa += 1;
    }
    // Exact: a mantissa of at most 2^53, and a power of two in two steps, of which the first
    // cannot lose bits. Where the product is too large it is infinite, as it ought to be.
    let exponent = lowest + unit;
    let value =
        mantissa as f64 * power_of_two(exponent / 2) * power_of_two(exponent - exponent / 2);
    (value, !half && !below && value.is_finite())
}

/// Of an exponent in the middle of what doubles have.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

fn has_bits_below(words: &[u64], at: i32) -> bool {
    let Ok(at) = usize::try_from(at) else {
        return false;
    };
    let whole = words.iter().take(at / 64).any(|&word| word != 0);
    whole || words[at / 64] & ((1 << (at % 64)) - 1) != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use rufous_base::rng::Rng;

    fn sum(values: &[f64]) -> Exact {
        let mut sum = Exact::ZERO;
        values.iter().for_each(|&value| sum.add(value));
        sum
    }

    #[test]
    fn of_one_value_is_the_value() {
        let mut rng = Rng::new(1);
        for _ in 0..20_000 {
            let value = f64::from_bits(rng.next_u64());
            if value.is_finite() {
                assert_eq!(sum(&[value]).to_f64(), value);
                assert_eq!(sum(&[value, -value]), Exact::ZERO);
            }
        }
        for value in [f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, -5e-324, 0.0] {
            assert_eq!(sum(&[value]).to_f64(), value);
        }
    }

    #[test]
    fn nothing_is_lost_between() {
        assert_eq!(sum(&[1e300, 1.0, -1e300]).to_f64(), 1.0);
        assert_eq!(sum(&[5e-324, f64::MAX, f64::MIN]).to_f64(), 5e-324);
        assert_eq!(sum(&[f64::MAX, f64::MAX]).to_f64(), f64::INFINITY);
        assert_eq!(sum(&[f64::MAX, f64::MAX, f64::MIN]).to_f64(), f64::MAX);
        assert_eq!(sum(&[0.1; 10]).to_f64(), 1.0);
    }

    /// Two doubles: their sum is rounded once, as the processor does it.
    #[test]
    fn rounds_as_the_processor() {
        let mut rng = Rng::new(2);
        for _ in 0..50_000 {
            let near = |rng: &mut Rng| {
                let bits = rng.next_u64() & !(0x7ff << 52);
                f64::from_bits(bits | (1000 + rng.below(60)) << 52)
            };
            let (a, b) = (near(&mut rng), near(&mut rng));
            assert_eq!(sum(&[a, b]).to_f64(), a + b, "{a} + {b}");
            let whole = rng.below(1 << 53) as f64;
            let by = 1 + rng.below(1000);
            assert_eq!(sum(&[whole]).divided(by).0, whole / by as f64);
        }
        // Denormal quotients, and one just below the smallest double.
        assert_eq!(sum(&[1e-320]).divided(3).0, 1e-320 / 3.0);
        assert_eq!(sum(&[5e-324]).divided(2), (0.0, false));
        assert_eq!(sum(&[5e-324]).divided(1), (5e-324, true));
        assert_eq!(sum(&[f64::MAX, f64::MAX]).divided(2), (f64::MAX, true));
    }

    #[test]
    fn bytes_give_the_sum_back() {
        let mut rng = Rng::new(3);
        let mut total = Exact::ZERO;
        for _ in 0..5_000 {
            let value = f64::from_bits(rng.next_u64());
            for value in [value, -(rng.below(9) as f64), rng.below(9) as f64] {
                if value.is_finite() {
                    total.add(value);
                    for sum in [total, sum(&[value])] {
                        let mut bytes = Vec::new();
                        sum.write(&mut bytes);
                        assert_eq!(Exact::read(&bytes), Some(sum));
                    }
                }
            }
        }
        let mut bytes = Vec::new();
        sum(&[-3.0]).write(&mut bytes);
        assert_eq!(bytes.len(), 9);
        assert_eq!(Exact::read(&[]), None);
        assert_eq!(Exact::read(&[36]), None);
        assert_eq!(Exact::read(&[0, 1]), None);
    }
}
