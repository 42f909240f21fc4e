//! Floating-point numbers: scores and other doubles, and the long doubles of `INCRBYFLOAT`.

mod big;
mod long_double;
mod round;
mod scan;

pub use long_double::{LongDouble, increment};

use round::{Binary, round};
use scan::{Number, scan};

/// Parses a double as `ZADD` does: what C's `strtod` takes if it takes everything, that is decimal, hexadecimal
/// (`0x1p3`) and `inf`; no spaces, no NaN, no overflow, and no underflow to zero.
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    finite_range(parse_any(text)?)
}

/// Results of C's `strtod` that come with an error of range: infinite or zero though the text is not.
fn finite_range((value, out_of_range): (f64, bool)) -> Option<f64> {
    (!out_of_range).then_some(value)
}

/// A double, and whether it became infinite or zero by rounding.
fn parse_any(text: &[u8]) -> Option<(f64, bool)> {
    let (negative, number) = scan(text)?;
    let (magnitude, is_zero) = match number {
        Number::Infinite => {
            return Some((
                if negative {
                    f64::NEG_INFINITY
                } else {
                    f64::INFINITY
                },
                false,
            ));
        }
        Number::Decimal(decimal) => {
            let unsigned = text
                .strip_prefix(b"-")
                .or(text.strip_prefix(b"+"))
                .unwrap_or(text);
            (
                str::from_utf8(unsigned).ok()?.parse::<f64>().ok()?,
                decimal.is_zero(),
            )
        }
        Number::Hex(hex) => (from_binary(hex), hex.bits == 0),
    };
    let out_of_range = magnitude.is_infinite() || magnitude == 0.0 && !is_zero;
    Some((if negative { -magnitude } else { magnitude }, out_of_range))
}

/// The nearest double.
fn from_binary(value: Binary) -> f64 {
    const PRECISION: u32 = f64::MANTISSA_DIGITS;
    const MIN_EXP: i32 = f64::MIN_EXP - PRECISION as i32;
    const MAX_EXP: i32 = f64::MAX_EXP - PRECISION as i32;
    let (mantissa, exp) = round(value, PRECISION, MIN_EXP);
    if exp > MAX_EXP {
        return f64::INFINITY;
    }
    let implicit = 1u64 << (PRECISION - 1);
    if mantissa < implicit {
        return f64::from_bits(mantissa);
    }
    f64::from_bits(((exp - MIN_EXP + 1) as u64) << (PRECISION - 1) | (mantissa - implicit))
}

/// One end of a range of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreBound {
    pub score: f64,
    /// Written as `(`: the score itself is outside.
    pub exclusive: bool,
}

/// Parses a bound of `ZRANGEBYSCORE` and its like.
///
/// Redis is laxer here than with scores: leading spaces are skipped, nothing at all is 0, and numbers too large or
/// too small become infinite or 0.
pub fn parse_score_bound(text: &[u8]) -> Option<ScoreBound> {
    let (exclusive, number) = match text {
        [b'(', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if number.is_empty() {
        return Some(ScoreBound {
            score: 0.0,
            exclusive,
        });
    }
    let spaces = number
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r'))
        .count();
    let (score, _) = parse_any(&number[spaces..])?;
    Some(ScoreBound { score, exclusive })
}

/// Whole numbers in this range (2^52 each way) are printed without an exponent.
const PLAIN_INTEGERS: std::ops::RangeInclusive<f64> = -4503599627370495.0..=4503599627370496.0;

/// Appends a double as Redis 7.2 prints it in replies: the shortest digits that read back as the same number.
///
/// The layout is Redis's: `5`, `0.1`, `1e+20`, `1.5e-7`, and (oddly) `1.2345678901234e+4` where there are seven or
/// more decimals and four or more digits before them. Redis's own digits are not the shortest in about one case of
/// a thousand; there the last digits differ, the number read back does not.
pub fn format_double(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        out.extend_from_slice(b"nan");
        return;
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    let magnitude = value.abs();
    if magnitude.is_infinite() {
        out.extend_from_slice(b"inf");
    } else if magnitude.fract() == 0.0 && PLAIN_INTEGERS.contains(&value) {
        out.extend_from_slice(itoa::Buffer::new().format(magnitude as u64).as_bytes());
    } else {
        let mut buffer = [0; 24];
        let (digits, exp) = shortest_digits(magnitude, &mut buffer);
        write_digits(out, digits, exp);
    }
}

/// The shortest digits d and the exponent e such that d × 10^e reads back as the same double, written to `into`.
fn shortest_digits(magnitude: f64, into: &mut [u8; 24]) -> (&[u8], i32) {
    let mut buffer = ryu::Buffer::new();
    let text = buffer.format_finite(magnitude);
    let (mantissa, exp) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut exp: i32 = exp.parse().unwrap_or(0) - fraction.len() as i32;
    let digits = whole.bytes().chain(fraction.bytes());
    let mut len = 0;
    for (place, digit) in into
        .iter_mut()
        .zip(digits.skip_while(|&digit| digit == b'0'))
    {
        *place = digit;
        len += 1;
    }
    while len > 1 && into[len - 1] == b'0' {
        len -= 1;
        exp += 1;
    }
    (&into[..len], exp)
}

/// Lays out d × 10^e.
fn write_digits(out: &mut Vec<u8>, digits: &[u8], exp: i32) {
    let count = digits.len() as i32;
    let scientific = exp + count - 1;
    if exp >= 0 && scientific < count + 7 {
        out.extend_from_slice(digits);
        out.resize(out.len() + exp as usize, b'0');
    } else if exp < 0 && (exp > -7 || scientific.abs() < 4) {
        let whole = (count + exp).max(0) as usize;
        if whole == 0 {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + (-exp - count) as usize, b'0');
            out.extend_from_slice(digits);
        } else {
            out.extend_from_slice(&digits[..whole]);
            out.push(b'.');
            out.extend_from_slice(&digits[whole..]);
        }
    } else {
        out.push(digits[0]);
        if count > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.extend_from_slice(if scientific < 0 { b"e-" } else { b"e+" });
        out.extend_from_slice(
            itoa::Buffer::new()
                .format(scientific.unsigned_abs())
                .as_bytes(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn formatted(value: f64) -> String {
        let mut out = Vec::new();
        format_double(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn scores() {
        let check = |text: &str, expected: Option<f64>| {
            assert_eq!(parse_f64(text.as_bytes()), expected, "{text:?}")
        };
        check("1", Some(1.0));
        check("+1.5", Some(1.5));
        check("1.", Some(1.0));
        check(".5", Some(0.5));
        check("-1e5", Some(-100_000.0));
        check("1E+2", Some(100.0));
        check("007", Some(7.0));
        check("inf", Some(f64::INFINITY));
        check("+INF", Some(f64::INFINITY));
        check("-Infinity", Some(f64::NEG_INFINITY));
        check("0x1p3", Some(8.0));
        check("0X.8", Some(0.5));
        check("-0x10", Some(-16.0));
        check("0x1.fffffffffffffp1023", Some(f64::MAX));
        check("0x1p-1074", Some(5e-324));
        check(
            "0x1.00000000000008000000000000000000000000000000001p0",
            Some(1.0 + f64::EPSILON),
        );
        check("0x1.00000000000008p0", Some(1.0));
        check("1e-320", Some(1e-320));
        check("0e999999999999999999999", Some(0.0));
        check("0x0p99999999999999999999", Some(0.0));
        for bad in [
            "",
            " 1",
            "1 ",
            "nan",
            "-nan",
            "nan(1)",
            ".",
            "e5",
            "1e",
            "1e+",
            "+-1",
            "--1",
            "0x",
            "0x.",
            "0xp1",
            "0x1p",
            "1e400",
            "1e-400",
            "-1e400",
            "0x1p1024",
            "0x1p-1080",
            "in",
            "infi",
            "infinit",
            "infinityy",
            "1_0",
            "1,5",
            "1f",
            "1\0",
            "١",
        ] {
            check(bad, None);
        }
        assert!(parse_f64(b"-0").is_some_and(|zero| zero == 0.0 && zero.is_sign_negative()));
    }

    #[test]
    fn bounds() {
        let check = |text: &str, expected: Option<(f64, bool)>| {
            let bound =
                parse_score_bound(text.as_bytes()).map(|bound| (bound.score, bound.exclusive));
            assert_eq!(bound, expected, "{text:?}");
        };
        check("1.5", Some((1.5, false)));
        check("(1.5", Some((1.5, true)));
        check("-inf", Some((f64::NEG_INFINITY, false)));
        check("(+inf", Some((f64::INFINITY, true)));
        check("", Some((0.0, false)));
        check("(", Some((0.0, true)));
        check("( 1", Some((1.0, true)));
        check("1e400", Some((f64::INFINITY, false)));
        check("-1e-400", Some((-0.0, false)));
        check("nan", None);
        check("((1", None);
        check(" ", None);
        check("1 ", None);
    }

    #[test]
    fn printing() {
        let check = |value: f64, expected: &str| assert_eq!(formatted(value), expected);
        check(0.0, "0");
        check(-0.0, "-0");
        check(5.0, "5");
        check(-5.0, "-5");
        check(0.1, "0.1");
        check(-1.5, "-1.5");
        check(f64::INFINITY, "inf");
        check(f64::NEG_INFINITY, "-inf");
        check(f64::NAN, "nan");
        check(1e15, "1000000000000000");
        check(4503599627370496.0, "4503599627370496");
        check(4503599627370497.0, "4503599627370497");
        check(1e17, "1e+17");
        check(1e20, "1e+20");
        check(1.5e300, "1.5e+300");
        check(1.2345678901234567e19, "12345678901234567000");
        check(3.0999999999999996, "3.0999999999999996");
        check(0.000001, "0.000001");
        check(0.0000001, "1e-7");
        check(1.5e-7, "1.5e-7");
        check(0.00123456789, "0.00123456789");
        check(123456.125, "123456.125");
        check(1234.12345678, "1234.12345678");
        check(12345.12345678, "1.234512345678e+4");
        check(5e-324, "5e-324");
        check(f64::MAX, "1.7976931348623157e+308");
    }

    proptest! {
        #[test]
        fn printed_doubles_read_back(value in proptest::num::f64::ANY) {
            prop_assume!(!value.is_nan());
            let text = formatted(value);
            prop_assert_eq!(parse_f64(text.as_bytes()).map(f64::to_bits), Some(value.to_bits()), "{}", text);
        }

        #[test]
        fn hexadecimal_is_exact(mantissa in 1u64..1 << 53, exp in -1074i32..=971) {
            let text = format!("0x{mantissa:x}p{exp}");
            let expected = mantissa as f64 * 2f64.powi(exp.max(-500)) * 2f64.powi(exp.min(-500) + 500);
            prop_assert_eq!(parse_f64(text.as_bytes()), Some(expected));
        }

        #[test]
        fn hostile_texts_are_harmless(text in "[-+0-9a-fA-FpPxX.infNaty() ]{0,30}") {
            let _ = parse_score_bound(text.as_bytes());
            if let Some(value) = parse_f64(text.as_bytes()) {
                prop_assert!(!value.is_nan());
            }
        }
    }
}
