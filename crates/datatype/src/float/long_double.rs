//! The 80-bit extended numbers of x87, in which Redis on x86 computes `INCRBYFLOAT` and `HINCRBYFLOAT`.
//!
//! With 64 bits of mantissa, sums of everyday decimals print as people expect (10.5 + 0.1 is 10.6), which doubles do
//! not give. Reading, adding and printing are exact up to the one rounding that the hardware does too, so the answers
//! are Redis's on x86 to the last digit. (Redis on ARM computes in 128 bits and differs from itself on x86.)

use super::big::Big;
use super::round::{Binary, round};
use super::scan::{Decimal, Number, scan};
use crate::ValueError;

const PRECISION: u32 = 64;
/// Exponent of the last bit of subnormal numbers.
const MIN_EXP: i32 = -16445;
/// Exponent of the last bit of the largest numbers.
const MAX_EXP: i32 = 16383 - 63;
/// Redis reads no longer texts than this as long doubles.
const MAX_TEXT_LEN: usize = 5 * 1024 - 1;
/// Decimals printed; trailing zeros are then cut.
const DECIMALS: u32 = 17;

/// An x87 extended number that is no NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongDouble {
    negative: bool,
    /// Nothing for infinity.
    magnitude: Option<Magnitude>,
}

/// `mantissa` × 2^`exp`, normalised: the top bit is set unless `exp` is `MIN_EXP`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Magnitude {
    exp: i32,
    mantissa: u64,
}

impl LongDouble {
    pub const ZERO: Self = Self {
        negative: false,
        magnitude: Some(Magnitude {
            mantissa: 0,
            exp: MIN_EXP,
        }),
    };

    /// Parses as C's `strtold` does if it takes everything; no spaces, no NaN, no overflow, no underflow to zero.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() > MAX_TEXT_LEN {
            return None;
        }
        let (negative, number) = scan(text)?;
        let (value, is_zero) = match number {
            Number::Infinite => {
                return Some(Self {
                    negative,
                    magnitude: None,
                });
            }
            Number::Hex(hex) => (hex, hex.bits == 0),
            Number::Decimal(decimal) if decimal.is_zero() => (
                Binary {
                    bits: 0,
                    sticky: false,
                    exp: 0,
                },
                true,
            ),
            Number::Decimal(decimal) => (from_decimal(decimal)?, false),
        };
        let value = Self::rounded(negative, value);
        let out_of_range = value
            .magnitude
            .is_none_or(|magnitude| magnitude.mantissa == 0 && !is_zero);
        (!out_of_range).then_some(value)
    }

    fn rounded(negative: bool, value: Binary) -> Self {
        let (mantissa, exp) = round(value, PRECISION, MIN_EXP);
        Self {
            negative,
            magnitude: (exp <= MAX_EXP).then_some(Magnitude { mantissa, exp }),
        }
    }

    pub fn is_finite(self) -> bool {
        self.magnitude.is_some()
    }

    /// The sum; nothing if it is not finite, be it infinite or the NaN of infinities that cancel.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let sum = match (self.magnitude?, other.magnitude?) {
            (a, b) if a >= b => add(self.negative, a, other.negative == self.negative, b),
            (a, b) => add(other.negative, b, other.negative == self.negative, a),
        };
        sum.is_finite().then_some(sum)
    }

    /// Appends the number with up to 17 decimals, trailing zeros cut; never an exponent, never `-0`.
    pub fn write(self, out: &mut Vec<u8>) {
        let start = out.len();
        if self.negative {
            out.push(b'-');
        }
        match self.magnitude {
            None => out.extend_from_slice(b"inf"),
            Some(Magnitude { mantissa, exp }) if exp >= 0 => {
                let mut whole = Big::from_u64(mantissa);
                whole.shl(exp.unsigned_abs());
                whole.write_decimal(out);
            }
            Some(Magnitude { mantissa, exp }) => write_fixed(out, mantissa, exp.unsigned_abs()),
        }
        if &out[start..] == b"-0" {
            out.remove(start);
        }
    }

    pub fn to_text(self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }
}

/// What `INCRBYFLOAT` leaves behind: an absent value counts as 0.
pub fn increment(current: Option<&[u8]>, by: &[u8]) -> Result<Vec<u8>, ValueError> {
    let value = match current {
        Some(text) => LongDouble::parse(text).ok_or(ValueError::NotFloat)?,
        None => LongDouble::ZERO,
    };
    let by = LongDouble::parse(by).ok_or(ValueError::NotFloat)?;
    Ok(value
        .checked_add(by)
        .ok_or(ValueError::NanOrInfinity)?
        .to_text())
}

/// Adds or subtracts magnitudes, the larger first; the sign is the larger's.
fn add(negative: bool, large: Magnitude, same_sign: bool, small: Magnitude) -> LongDouble {
    // One bit above for the carry, 63 below. Subtraction loses more than one bit at the top only if the exponents
    // differ by at most one, and then nothing is lost below; so 63 bits and a sticky remainder suffice.
    let bits = u128::from(large.mantissa) << 63;
    let other = u128::from(small.mantissa) << 63;
    let gap = (large.exp - small.exp).unsigned_abs();
    let aligned = other.checked_shr(gap).unwrap_or(0);
    let sticky = aligned.checked_shl(gap).unwrap_or(0) != other;
    let exp = large.exp - 63;
    let bits = if same_sign {
        bits + aligned
    } else {
        bits - aligned - u128::from(sticky)
    };
    // Opposite numbers cancel to a positive zero.
    let negative = negative && (bits != 0 || same_sign);
    LongDouble::rounded(negative, Binary { bits, sticky, exp })
}

/// A decimal number that is not 0, exact but for a sticky remainder; nothing if it is out of every range.
fn from_decimal(decimal: Decimal<'_>) -> Option<Binary> {
    let all = || decimal.whole.iter().chain(decimal.fraction);
    let leading = all().take_while(|&&digit| digit == b'0').count();
    let trailing = all().rev().take_while(|&&digit| digit == b'0').count();
    let count = decimal.whole.len() + decimal.fraction.len() - leading - trailing;
    let digits = all().skip(leading).take(count);
    // The number is digits × 10^exp, and lies below 10^(count + exp).
    let exp = decimal
        .exp
        .saturating_add(trailing as i64 - decimal.fraction.len() as i64);
    if !(-4960..=4940).contains(&exp.saturating_add(count as i64)) {
        return None;
    }
    let exp = exp as i32;
    if count <= 19 && (-27..=19).contains(&exp) {
        let digits = digits.fold(0u64, |value, digit| value * 10 + u64::from(digit - b'0'));
        return Some(from_short_decimal(digits, exp));
    }
    let mut digits = Big::from_digits(digits);
    if exp >= 0 {
        digits.mul_pow5(exp.unsigned_abs());
        return Some(digits.to_binary(exp));
    }
    let mut divisor = Big::from_u64(1);
    divisor.mul_pow5(exp.unsigned_abs());
    Some(digits.divide(divisor, exp))
}

/// The everyday case without big numbers: `digits` is not 0, `exp` between -27 and 19.
fn from_short_decimal(digits: u64, exp: i32) -> Binary {
    let power = 5u128.pow(exp.unsigned_abs());
    if exp >= 0 {
        return Binary {
            bits: u128::from(digits) * power,
            sticky: false,
            exp,
        };
    }
    // The dividend has its top bit set and 5^27 has 63 bits: the quotient has 65 bits or more.
    let shift = 64 + digits.leading_zeros();
    let dividend = u128::from(digits) << shift;
    let bits = dividend / power;
    Binary {
        bits,
        sticky: bits * power != dividend,
        exp: exp - shift as i32,
    }
}

/// Writes `mantissa` / 2^`shift`, rounded to [`DECIMALS`] decimals (to nearest, ties to even, as C's `printf`).
fn write_fixed(out: &mut Vec<u8>, mantissa: u64, shift: u32) {
    const SCALE: u128 = 10u128.pow(DECIMALS);
    // Below 2^121, so that anything shifted further than that rounds to 0.
    let scaled = u128::from(mantissa) * SCALE;
    let fixed = if shift >= 127 {
        0
    } else {
        let (kept, rest, half) = (
            scaled >> shift,
            scaled & ((1 << shift) - 1),
            1u128 << shift >> 1,
        );
        kept + u128::from(rest > half || rest == half && kept & 1 == 1)
    };
    let mut buffer = itoa::Buffer::new();
    out.extend_from_slice(buffer.format(fixed / SCALE).as_bytes());
    // 10^17 on top keeps the leading zeros of the decimals.
    let decimals = buffer.format((fixed % SCALE + SCALE) as u64).as_bytes();
    let used = decimals
        .iter()
        .rposition(|&digit| digit != b'0')
        .unwrap_or(0);
    if used > 0 {
        out.push(b'.');
        out.extend_from_slice(&decimals[1..=used]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(current: &str, by: &str, expected: Result<&str, ValueError>) {
        let sum = increment(Some(current.as_bytes()), by.as_bytes());
        let sum = sum.map(|text| String::from_utf8(text).unwrap());
        assert_eq!(sum, expected.map(str::to_owned), "{current} + {by}");
    }

    /// Answers of redis-server 7.0.15 on x86-64.
    #[test]
    fn sums_as_redis_prints_them() {
        check("10.50", "0.1", Ok("10.6"));
        check("5.0e3", "2.0e2", Ok("5200"));
        check("3.0", "1.1", Ok("4.1"));
        check("0.1", "0.2", Ok("0.3"));
        check("1", "-1", Ok("0"));
        check("-0", "-0", Ok("0"));
        check("0", "-1e-30", Ok("0"));
        check("0x10", "0x1p-2", Ok("16.25"));
        check("-1.5", "1", Ok("-0.5"));
        check("1.2e3", "1e-17", Ok("1200"));
        check("1e15", "0.1", Ok("1000000000000000.0999755859375"));
        check(
            "123456789.123456789",
            "0.000000001",
            Ok("123456789.12345678999554366"),
        );
        check("1e18", "0.3", Ok("1000000000000000000.3125"));
        check("12345678901234567890", "0.5", Ok("12345678901234567890"));
        check("0.1", "1e-17", Ok("0.10000000000000001"));
        check("-0.7", "0.1", Ok("-0.6"));
        check("1e25", "1", Ok("10000000000000000000000000"));
        check("1e-18", "4e-18", Ok("0"));
        check("3.14159265358979323846", "0", Ok("3.14159265358979324"));
        check("99999999999999999", "0.99", Ok("99999999999999999.9921875"));
        check("1e30", "-1e30", Ok("0"));
        check(
            "1.7976931348623157e308",
            "0",
            Ok(
                "179769313486231569995921046774104434048386446944329178485314420765176628523124396354701868608387085564428793419425520689308708363451136055357897278026477617073498977686288394835618163294045594434929537447290627480669417384648879122776218333598953852832103282504751611691208117720159985926376802466863339536384",
            ),
        );
    }

    #[test]
    fn refusals() {
        check("1", "inf", Err(ValueError::NanOrInfinity));
        check("inf", "-inf", Err(ValueError::NanOrInfinity));
        check("1e4932", "1e4932", Err(ValueError::NanOrInfinity));
        for bad in [
            "",
            " 1",
            "1 ",
            "nan",
            "1e4933",
            "1e-4952",
            "1e-99999999999999999999",
            "0x1p16384",
            "0x1p-16446",
            "1x",
        ] {
            check(bad, "1", Err(ValueError::NotFloat));
            check("1", bad, Err(ValueError::NotFloat));
        }
        let long = "0".repeat(MAX_TEXT_LEN);
        check(&long, "1", Ok("1"));
        check(&(long + "0"), "1", Err(ValueError::NotFloat));
        assert_eq!(increment(None, b"3e2"), Ok(b"300".to_vec()));
    }

    fn exact(value: LongDouble) -> (bool, u64, i32) {
        let magnitude = value.magnitude.unwrap();
        (value.negative, magnitude.mantissa, magnitude.exp)
    }

    #[test]
    fn the_ends_of_the_range() {
        let parse = |text: &str| LongDouble::parse(text.as_bytes()).map(exact);
        assert_eq!(parse("1"), Some((false, 1 << 63, -63)));
        assert_eq!(parse("-0.1"), Some((true, 0xcccc_cccc_cccc_cccd, -67)));
        assert_eq!(
            parse("1.18973149535723176502e+4932"),
            Some((false, u64::MAX, MAX_EXP))
        );
        assert_eq!(
            parse("1.18973149535723176503e+4932"),
            Some((false, u64::MAX, MAX_EXP))
        );
        assert_eq!(parse("1.1897314953572317651e+4932"), None);
        assert_eq!(
            parse("3.6451995318824746025e-4951"),
            Some((false, 1, MIN_EXP))
        );
        assert_eq!(parse("1.9e-4951"), Some((false, 1, MIN_EXP)));
        assert_eq!(parse("1.8e-4951"), None);
        assert_eq!(
            parse("3.3621031431120935063e-4932"),
            Some((false, 1 << 63, MIN_EXP))
        );
        assert_eq!(parse("0x1p-16445"), Some((false, 1, MIN_EXP)));
    }

    /// The written number with the point moved by `places`, as decimal text with an exponent.
    fn respell(mantissa: u64, exp: i32, places: usize) -> String {
        format!("{mantissa}{}e{}", "0".repeat(places), exp - places as i32)
    }

    proptest! {
        #[test]
        fn decimals_add_exactly(a in -1_000_000_000_000i64..1_000_000_000_000, b in -1_000_000_000_000i64..1_000_000_000_000) {
            // Twelve digits and four decimals fit into 64 bits of mantissa with enough to spare.
            let text = |value: i64| format!("{value}e-4");
            let sum = increment(Some(text(a).as_bytes()), text(b).as_bytes()).unwrap();
            let sum = String::from_utf8(sum).unwrap();
            let magnitude = (a + b).unsigned_abs();
            let plain = format!("{}.{:04}", magnitude / 10_000, magnitude % 10_000);
            let plain = plain.trim_end_matches('0').trim_end_matches('.');
            let sign = if a + b < 0 { "-" } else { "" };
            // What is left of rounding shows from the fifteenth decimal at the earliest, for sums far above 1000.
            let printed: f64 = sum.parse().unwrap();
            prop_assert!((printed - (a + b) as f64 / 10_000.0).abs() < 1e-7);
            if magnitude < 1_000_000 && a.unsigned_abs() < 1_000_000 {
                prop_assert_eq!(sum, format!("{sign}{plain}"));
            }
        }

        #[test]
        fn integers_add_exactly(a in -(1i64 << 62)..1 << 62, b in -(1i64 << 62)..1 << 62) {
            let sum = increment(Some(a.to_string().as_bytes()), b.to_string().as_bytes()).unwrap();
            prop_assert_eq!(sum, (a + b).to_string().into_bytes());
        }

        #[test]
        fn short_and_long_decimals_agree(mantissa in 1u64..10_000_000_000_000_000_000, exp in -27i32..=19) {
            let short = LongDouble::parse(format!("{mantissa}e{exp}").as_bytes());
            // A last digit of 1 forty places below is too little to change anything but a tie.
            let long = LongDouble::parse(format!("{mantissa}.{}1e{exp}", "0".repeat(60)).as_bytes());
            prop_assert_eq!(short, LongDouble::parse(respell(mantissa, exp, 30).as_bytes()));
            if short != long {
                prop_assert_eq!(short.and_then(|short| short.magnitude).map(|magnitude| magnitude.mantissa & 1), Some(0));
            }
        }

        #[test]
        fn doubles_are_read_exactly(value in proptest::num::f64::NORMAL) {
            // Seventeen digits determine a double, so rounding the long double to a double must give it back.
            let (negative, mantissa, exp) = exact(LongDouble::parse(format!("{value:.17e}").as_bytes()).unwrap());
            let magnitude = crate::float::from_binary(Binary { bits: u128::from(mantissa), sticky: false, exp });
            prop_assert_eq!(if negative { -magnitude } else { magnitude }, value);
        }

        #[test]
        fn whole_numbers_print_and_read_back(mantissa in 1u64 << 63.., exp in 0i32..=MAX_EXP) {
            let value = LongDouble { negative: false, magnitude: Some(Magnitude { mantissa, exp }) };
            prop_assert_eq!(LongDouble::parse(&value.to_text()), Some(value));
        }
    }
}
