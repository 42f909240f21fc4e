//! The texts that C's `strtod` and `strtold` take: which part is which, before any arithmetic.

use super::round::Binary;

/// An unsigned number as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Number<'a> {
    Infinite,
    Decimal(Decimal<'a>),
    /// Already exact, or exact but for a sticky remainder far below any precision in use.
    Hex(Binary),
}

/// Decimal digits before and after the point, and the exponent as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal<'a> {
    pub(super) whole: &'a [u8],
    pub(super) fraction: &'a [u8],
    /// Saturated: longer exponents than 64 bits mean zero or infinity anyway.
    pub(super) exp: i64,
}

impl Decimal<'_> {
    pub(super) fn is_zero(&self) -> bool {
        self.whole
            .iter()
            .chain(self.fraction)
            .all(|&digit| digit == b'0')
    }
}

/// Splits a whole text into its sign (`true` for negative) and number. NaN is none.
pub(super) fn scan(text: &[u8]) -> Option<(bool, Number<'_>)> {
    let (negative, rest) = split_sign(text);
    let number = if rest.eq_ignore_ascii_case(b"inf") || rest.eq_ignore_ascii_case(b"infinity") {
        Number::Infinite
    } else if let [b'0', b'x' | b'X', hex @ ..] = rest {
        scan_hex(hex)?
    } else {
        scan_decimal(rest)?
    };
    Some((negative, number))
}

fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    }
}

/// The digits before the point, those after it, and the rest. There must be a digit.
fn split_digits(text: &[u8], is_digit: fn(&u8) -> bool) -> Option<(&[u8], &[u8], &[u8])> {
    let run = |text: &[u8]| text.iter().take_while(|byte| is_digit(byte)).count();
    let (whole, rest) = text.split_at(run(text));
    let (fraction, rest) = match rest {
        [b'.', rest @ ..] => rest.split_at(run(rest)),
        _ => (&[][..], rest),
    };
    (!whole.is_empty() || !fraction.is_empty()).then_some((whole, fraction, rest))
}

/// An exponent after one of two letters, which must be all that is left; nothing left means 0.
fn scan_exp(text: &[u8], letters: [u8; 2]) -> Option<i64> {
    let Some((letter, rest)) = text.split_first() else {
        return Some(0);
    };
    let (negative, digits) = split_sign(rest);
    if !letters.contains(letter) || digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let magnitude = digits.iter().fold(0i64, |exp, digit| {
        exp.saturating_mul(10)
            .saturating_add(i64::from(digit - b'0'))
    });
    Some(if negative { -magnitude } else { magnitude })
}

fn scan_decimal(text: &[u8]) -> Option<Number<'_>> {
    let (whole, fraction, rest) = split_digits(text, u8::is_ascii_digit)?;
    Some(Number::Decimal(Decimal {
        whole,
        fraction,
        exp: scan_exp(rest, [b'e', b'E'])?,
    }))
}

fn scan_hex(text: &[u8]) -> Option<Number<'_>> {
    let (whole, fraction, rest) = split_digits(text, u8::is_ascii_hexdigit)?;
    let exp = scan_exp(rest, [b'p', b'P'])?;
    let (mut bits, mut sticky, mut dropped) = (0u128, false, 0i64);
    for &digit in whole.iter().chain(fraction) {
        let digit = (digit as char).to_digit(16).unwrap_or(0);
        // Once the top four bits are in use, 125 or more bits are kept: more than twice any precision.
        if bits >> 124 == 0 {
            bits = bits << 4 | u128::from(digit);
        } else {
            dropped += 1;
            sticky |= digit != 0;
        }
    }
    let exp = exp.saturating_add(4 * (dropped - fraction.len() as i64));
    // Far beyond every format, and far from overflowing the arithmetic on exponents.
    let exp = exp.clamp(-100_000, 100_000) as i32;
    Some(Number::Hex(Binary { bits, sticky, exp }))
}
