//! Integers as Redis reads them: canonical decimal of 64 bits and nothing else, so that parsing and printing are
//! inverse and a counter may be kept as a number.

use crate::ValueError;

/// Longest canonical integer: a sign and nineteen digits, or twenty digits without a sign.
const MAX_DIGITS: usize = 20;

/// Parses a canonical integer: an optional `-`, no `+`, no leading zero, no space, no `-0`, no overflow.
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let magnitude = parse_u64(digits)?;
    match (negative, magnitude) {
        (true, 0) => None,
        (true, m) if m <= i64::MIN.unsigned_abs() => Some(0i64.wrapping_sub_unsigned(m)),
        (true, _) => None,
        (false, m) => i64::try_from(m).ok(),
    }
}

/// Parses a canonical integer without a sign, up to `u64::MAX`.
pub fn parse_u64(text: &[u8]) -> Option<u64> {
    match text {
        [b'0'] => Some(0),
        [b'1'..=b'9', ..] if text.len() <= MAX_DIGITS => digits(text),
        _ => None,
    }
}

/// Parses what the C library's `strtoull` accepts when it consumes everything: leading zeros and a `+` are fine.
///
/// Redis reads scan cursors and the parts of stream ids this way. Rejects the wrapped negatives and the leading
/// spaces that the C function would let through.
pub fn parse_u64_lenient(text: &[u8]) -> Option<u64> {
    let text = text.strip_prefix(b"+").unwrap_or(text);
    if text.is_empty() {
        return None;
    }
    digits(text)
}

fn digits(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Whether `OBJECT ENCODING` calls this string `int`.
pub fn is_canonical_integer(text: &[u8]) -> bool {
    parse_i64(text).is_some()
}

/// Adds to a counter.
pub fn add(value: i64, increment: i64) -> Result<i64, ValueError> {
    value.checked_add(increment).ok_or(ValueError::Overflow)
}

/// Turns the argument of `DECRBY` into the increment to add.
pub fn negate_decrement(decrement: i64) -> Result<i64, ValueError> {
    decrement.checked_neg().ok_or(ValueError::DecrementOverflow)
}

/// What `INCRBY` leaves behind: an absent value counts as 0.
pub fn increment(current: Option<&[u8]>, by: i64) -> Result<i64, ValueError> {
    let value = match current {
        Some(text) => parse_i64(text).ok_or(ValueError::NotInteger)?,
        None => 0,
    };
    add(value, by)
}

/// Appends the canonical decimal form.
pub fn write_i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn strict_integers() {
        let check = |text: &str, expected: Option<i64>| {
            assert_eq!(parse_i64(text.as_bytes()), expected, "{text:?}")
        };
        check("0", Some(0));
        check("-1", Some(-1));
        check("9223372036854775807", Some(i64::MAX));
        check("-9223372036854775808", Some(i64::MIN));
        for bad in [
            "",
            "-",
            "-0",
            "+1",
            "01",
            "-01",
            "00",
            " 1",
            "1 ",
            "1\0",
            "1.0",
            "0x1",
            "1e3",
            "--1",
            "9223372036854775808",
            "-9223372036854775809",
            "18446744073709551616",
            "100000000000000000000",
            "000000000000000000001",
        ] {
            check(bad, None);
        }
    }

    #[test]
    fn unsigned_integers() {
        assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_u64(b"18446744073709551616"), None);
        assert_eq!(parse_u64(b"-1"), None);
        assert_eq!(parse_u64(b"007"), None);
        assert_eq!(parse_u64_lenient(b"007"), Some(7));
        assert_eq!(parse_u64_lenient(b"+8"), Some(8));
        assert_eq!(
            parse_u64_lenient(b"00000000000000000000000018446744073709551615"),
            Some(u64::MAX)
        );
        for bad in [
            &b""[..],
            b"+",
            b"-1",
            b" 1",
            b"1 ",
            b"++1",
            b"18446744073709551616",
        ] {
            assert_eq!(parse_u64_lenient(bad), None);
        }
    }

    #[test]
    fn counters() {
        assert_eq!(increment(None, -5), Ok(-5));
        assert_eq!(increment(Some(b"10"), 5), Ok(15));
        assert_eq!(
            increment(Some(b"9223372036854775807"), 1),
            Err(ValueError::Overflow)
        );
        assert_eq!(
            increment(Some(b"-9223372036854775808"), -1),
            Err(ValueError::Overflow)
        );
        assert_eq!(increment(Some(b"1.5"), 1), Err(ValueError::NotInteger));
        assert_eq!(increment(Some(b""), 1), Err(ValueError::NotInteger));
        assert_eq!(
            negate_decrement(i64::MIN),
            Err(ValueError::DecrementOverflow)
        );
        assert_eq!(negate_decrement(7), Ok(-7));
    }

    proptest! {
        #[test]
        fn parsing_inverts_printing(value: i64) {
            let mut text = Vec::new();
            write_i64(&mut text, value);
            prop_assert_eq!(parse_i64(&text), Some(value));
        }

        #[test]
        fn whatever_parses_is_canonical(text in "[-+0-9 ]{0,22}") {
            let canonical = text.parse::<i64>().ok().filter(|value| value.to_string() == text);
            prop_assert_eq!(parse_i64(text.as_bytes()), canonical);
        }
    }
}
