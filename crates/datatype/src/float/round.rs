//! Rounding an exact binary value to a format's precision: to nearest, ties to even.

/// The value `bits` × 2^`exp`, or a little more if `sticky`. With `sticky`, `bits` must have more bits than any
/// precision to which it is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Binary {
    pub(super) bits: u128,
    pub(super) sticky: bool,
    pub(super) exp: i32,
}

/// Rounds to a mantissa m and exponent e, the value being m × 2^e. The mantissa has exactly `precision` bits, or
/// fewer if e is `min_exp` (subnormal numbers, zero). The largest exponent is the caller's to check.
pub(super) fn round(value: Binary, precision: u32, min_exp: i32) -> (u64, i32) {
    let Binary { bits, sticky, exp } = value;
    if bits == 0 {
        return (0, min_exp);
    }
    let len = 128 - bits.leading_zeros() as i32;
    let drop = (len - precision as i32).max(min_exp - exp);
    if drop <= 0 {
        debug_assert!(!sticky, "a remainder below bits that are all kept");
        return ((bits << -drop) as u64, exp + drop);
    }
    if drop > 128 {
        return (0, min_exp);
    }
    let kept = bits.checked_shr(drop as u32).unwrap_or(0) as u64;
    let rest = bits & (u128::MAX >> (128 - drop));
    let half = 1u128 << (drop - 1);
    let up = rest > half || rest == half && (sticky || kept & 1 == 1);
    let mantissa = kept as u128 + u128::from(up);
    if mantissa >> precision != 0 {
        return ((mantissa >> 1) as u64, exp + drop + 1);
    }
    (mantissa as u64, exp + drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_even() {
        let check = |bits, sticky, exp, expected| {
            assert_eq!(round(Binary { bits, sticky, exp }, 4, -10), expected)
        };
        check(0b1, false, 0, (0b1000, -3));
        check(0b10111, false, 0, (0b1100, 1));
        check(0b10101, false, 0, (0b1010, 1));
        check(0b10101, true, 0, (0b1011, 1));
        check(0b11111, false, 0, (0b1000, 2));
        check(0b1111, false, -12, (0b100, -10));
        check(0b10, false, -12, (0, -10));
        check(0b11, false, -12, (1, -10));
        check(1 << 127, false, -138, (0, -10));
        check(1 << 127, true, -138, (1, -10));
        check(u128::MAX, false, -200, (0, -10));
        check(0, false, 50, (0, -10));
    }
}
