//! Decimal integers and doubles in the form that Redis reads and writes.

use std::ops::Deref;

/// Reads the one canonical decimal form of an `i64`: digits with an optional `-`, no `+`, no
/// blanks, no leading zeros, no `-0`. `None` for any other text and when out of range.
#[inline]
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    // Nineteen digits fit in a u64 whatever they are.
    let mut magnitude = 0u64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        magnitude = magnitude * 10 + u64::from(digit);
    }
    if negative {
        0i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    }
}

/// A double as text, on the stack.
#[derive(Clone, Copy, Debug)]
pub struct DoubleText {
    bytes: [u8; 32],
    len: u8,
}

impl DoubleText {
    fn push(&mut self, text: &[u8]) {
        let start = self.len as usize;
        self.bytes[start..start + text.len()].copy_from_slice(text);
        self.len += text.len() as u8;
    }

    pub fn as_str(&self) -> &str {
        // Only ASCII is ever pushed.
        std::str::from_utf8(self).unwrap_or_default()
    }
}

impl Deref for DoubleText {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }
}

/// Shortest text that reads back as `value`, laid out as C's `%.17g` lays it out: integers without
/// a point, exponents from 17 digits or below 1e-4 on, with a sign and at least two digits. `inf`,
/// `-inf` and `nan` for the rest.
pub fn format_double(value: f64) -> DoubleText {
    let mut text = DoubleText {
        bytes: [0; 32],
        len: 0,
    };
    if !value.is_finite() {
        text.push(match value {
            f64::INFINITY => b"inf",
            f64::NEG_INFINITY => b"-inf",
            _ => b"nan",
        });
        return text;
    }
    // Whole numbers up to 17 digits are printed exactly, where the shortest digits that still
    // identify the value could end in other ones.
    if value.abs() < 1e17 && value.trunc() == value && (value != 0.0 || value.is_sign_positive()) {
        text.push(itoa::Buffer::new().format(value as i64).as_bytes());
        return text;
    }
    if value.is_sign_negative() {
        text.push(b"-");
    }
    let mut digits = [0; 20];
    let (count, exponent) = shortest_digits(value.abs(), &mut digits);
    lay_out(&digits[..count], exponent, &mut text);
    text
}

/// Significant digits of a finite `value` ≥ 0 without trailing zeros, their number, and the decimal
/// exponent of the first.
fn shortest_digits(value: f64, digits: &mut [u8; 20]) -> (usize, i32) {
    let mut buffer = ryu::Buffer::new();
    let text = buffer.format_finite(value);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut exponent = exponent.parse::<i32>().unwrap_or(0) + whole.len() as i32 - 1;
    let mut count = 0;
    for byte in whole.bytes().chain(fraction.bytes()) {
        if count == 0 && byte == b'0' {
            exponent -= 1;
        } else if count < digits.len() {
            digits[count] = byte;
            count += 1;
        }
    }
    while count > 0 && digits[count - 1] == b'0' {
        count -= 1;
    }
    if count == 0 {
        digits[0] = b'0';
        return (1, 0);
    }
    (count, exponent)
}

fn lay_out(digits: &[u8], exponent: i32, text: &mut DoubleText) {
    const ZEROS: [u8; 17] = [b'0'; 17];
    if (0..17).contains(&exponent) {
        let whole = exponent as usize + 1;
        if digits.len() <= whole {
            text.push(digits);
            text.push(&ZEROS[..whole - digits.len()]);
        } else {
            text.push(&digits[..whole]);
            text.push(b".");
            text.push(&digits[whole..]);
        }
    } else if (-4..0).contains(&exponent) {
        text.push(b"0.");
        text.push(&ZEROS[..(-exponent - 1) as usize]);
        text.push(digits);
    } else {
        text.push(&digits[..1]);
        if digits.len() > 1 {
            text.push(b".");
            text.push(&digits[1..]);
        }
        text.push(if exponent < 0 { b"e-" } else { b"e+" });
        let size = exponent.unsigned_abs();
        if size < 10 {
            text.push(b"0");
        }
        text.push(itoa::Buffer::new().format(size).as_bytes());
    }
}
