//! Checking RESP2 replies in place: the expected type, and for bulk values length and first bytes.

use std::fmt;

use super::keys::DIGITS;

/// What the next reply, or the next part of an array, must look like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Check {
    /// `+…`, whatever it says.
    Simple,
    /// `:…`, any integer.
    Integer,
    /// A bulk value of this length whose first bytes are those of its key.
    Value { first: [u8; DIGITS], len: u32 },
    /// The same, or nil.
    ValueOrNil { first: [u8; DIGITS], len: u32 },
    /// The header of an array of this length; its elements are expected one by one after it.
    Array(u32),
    /// A bulk value of any content and length, or nil.
    Bulk,
    /// A whole array of this many bulk values, whatever they hold.
    Bulks(u32),
    /// Anything but an error, or an array that has one in it.
    Any,
}

/// A reply other than the expected one.
#[derive(Debug)]
pub struct Mismatch {
    pub wanted: Check,
    pub got: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "expected {:?}, the server answered {:?}",
            self.wanted, self.got
        )
    }
}

impl std::error::Error for Mismatch {}

/// The bytes that the reply at the front of `buf` takes, or `None` while it is incomplete.
pub fn check(buf: &[u8], wanted: Check) -> Result<Option<usize>, Mismatch> {
    let Some(kind) = buf.first() else {
        return Ok(None);
    };
    match (wanted, kind) {
        (Check::Simple, b'+') if buf.starts_with(b"+OK\r\n") => Ok(Some(5)),
        (Check::Simple, b'+') => Ok(line_end(buf)),
        (Check::Integer, b':') => match number_line(buf) {
            Number::Whole(_, end) => Ok(Some(end)),
            Number::Partial => Ok(None),
            Number::Malformed => Err(mismatch(buf, wanted)),
        },
        (Check::Value { first, len }, b'$') => bulk(buf, wanted, first, len, false),
        (Check::ValueOrNil { first, len }, b'$') => bulk(buf, wanted, first, len, true),
        (Check::Array(len), b'*') => match number_line(buf) {
            Number::Whole(n, end) if n == i64::from(len) => Ok(Some(end)),
            Number::Partial => Ok(None),
            _ => Err(mismatch(buf, wanted)),
        },
        (Check::Bulk, b'$') => any_bulk(buf, wanted),
        (Check::Bulks(len), b'*') => bulks(buf, wanted, len),
        (Check::Any, _) => any(buf, MOST_NESTED),
        _ => Err(mismatch(buf, wanted)),
    }
}

fn bulks(buf: &[u8], wanted: Check, len: u32) -> Result<Option<usize>, Mismatch> {
    let mut at = match number_line(buf) {
        Number::Whole(n, end) if n == i64::from(len) => end,
        Number::Partial => return Ok(None),
        _ => return Err(mismatch(buf, wanted)),
    };
    for _ in 0..len {
        match buf.get(at) {
            None => return Ok(None),
            Some(b'$') => {}
            Some(_) => return Err(mismatch(&buf[at..], wanted)),
        }
        let Some(taken) = any_bulk(&buf[at..], wanted)? else {
            return Ok(None);
        };
        at += taken;
    }
    Ok(Some(at))
}

/// Arrays may lie within one another so deep.
const MOST_NESTED: usize = 4;

fn any(buf: &[u8], depth: usize) -> Result<Option<usize>, Mismatch> {
    match buf.first() {
        None => Ok(None),
        Some(b'+' | b'_') => Ok(line_end(buf)),
        Some(b':') => check(buf, Check::Integer),
        Some(b'$') => any_bulk(buf, Check::Any),
        Some(b'*') if depth > 0 => {
            let (count, mut at) = match number_line(buf) {
                Number::Whole(count, end) => (count, end),
                Number::Partial => return Ok(None),
                Number::Malformed => return Err(mismatch(buf, Check::Any)),
            };
            for _ in 0..count {
                let Some(taken) = any(&buf[at..], depth - 1)? else {
                    return Ok(None);
                };
                at += taken;
            }
            Ok(Some(at))
        }
        Some(_) => Err(mismatch(buf, Check::Any)),
    }
}

fn any_bulk(buf: &[u8], wanted: Check) -> Result<Option<usize>, Mismatch> {
    match number_line(buf) {
        Number::Whole(-1, end) => Ok(Some(end)),
        Number::Whole(n, end) => {
            let length = usize::try_from(n).map_err(|_| mismatch(buf, wanted))?;
            let whole = end + length + 2;
            if buf.len() < whole {
                return Ok(None);
            }
            if &buf[whole - 2..whole] != b"\r\n" {
                return Err(mismatch(buf, wanted));
            }
            Ok(Some(whole))
        }
        Number::Partial => Ok(None),
        Number::Malformed => Err(mismatch(buf, wanted)),
    }
}

fn bulk(
    buf: &[u8],
    wanted: Check,
    first: [u8; DIGITS],
    len: u32,
    nil_ok: bool,
) -> Result<Option<usize>, Mismatch> {
    let (got, start) = match number_line(buf) {
        Number::Whole(n, end) => (n, end),
        Number::Partial => return Ok(None),
        Number::Malformed => return Err(mismatch(buf, wanted)),
    };
    if got == -1 && nil_ok {
        return Ok(Some(start));
    }
    if got != i64::from(len) {
        return Err(mismatch(buf, wanted));
    }
    let end = start + len as usize;
    if buf.len() < end + 2 {
        return Ok(None);
    }
    let known = DIGITS.min(len as usize);
    if buf[start..start + known] != first[..known] || &buf[end..end + 2] != b"\r\n" {
        return Err(mismatch(buf, wanted));
    }
    Ok(Some(end + 2))
}

enum Number {
    Whole(i64, usize),
    Partial,
    Malformed,
}

/// The integer of a line such as `$64\r\n`, and where the line ends.
fn number_line(buf: &[u8]) -> Number {
    let negative = buf.get(1) == Some(&b'-');
    let mut value = 0i64;
    let mut at = if negative { 2 } else { 1 };
    loop {
        match buf.get(at) {
            None => return Number::Partial,
            Some(digit @ b'0'..=b'9') if at < 21 => {
                value = value.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
                at += 1;
            }
            Some(b'\r') => break,
            Some(_) => return Number::Malformed,
        }
    }
    match buf.get(at + 1) {
        None => Number::Partial,
        Some(b'\n') => Number::Whole(if negative { -value } else { value }, at + 2),
        Some(_) => Number::Malformed,
    }
}

fn line_end(buf: &[u8]) -> Option<usize> {
    buf.windows(2)
        .position(|pair| pair == b"\r\n")
        .map(|at| at + 2)
}

fn mismatch(buf: &[u8], wanted: Check) -> Mismatch {
    let shown = &buf[..buf.len().min(120)];
    Mismatch {
        wanted,
        got: String::from_utf8_lossy(shown).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::digits;
    use super::*;

    fn value(number: u64, len: u32) -> Check {
        Check::Value {
            first: digits(number),
            len,
        }
    }

    /// The whole reply is taken, every proper prefix is incomplete.
    fn accepts(reply: &[u8], wanted: Check) {
        for cut in 0..reply.len() {
            let got = check(&reply[..cut], wanted).unwrap();
            assert_eq!(
                got,
                None,
                "{cut} bytes of {:?}",
                String::from_utf8_lossy(reply)
            );
        }
        assert_eq!(check(reply, wanted).unwrap(), Some(reply.len()));
        let mut followed = reply.to_vec();
        followed.extend_from_slice(b"+NEXT\r\n");
        assert_eq!(check(&followed, wanted).unwrap(), Some(reply.len()));
    }

    #[test]
    fn right_replies_are_taken_whole() {
        accepts(b"+OK\r\n", Check::Simple);
        accepts(b"+PONG\r\n", Check::Simple);
        accepts(b":-12\r\n", Check::Integer);
        accepts(b"$12\r\n00000007abcd\r\n", value(7, 12));
        accepts(b"$4\r\n0000\r\n", value(7, 4));
        accepts(
            b"$-1\r\n",
            Check::ValueOrNil {
                first: digits(7),
                len: 12,
            },
        );
        accepts(b"*16\r\n", Check::Array(16));
        accepts(b"$3\r\nabc\r\n", Check::Bulk);
        accepts(b"$-1\r\n", Check::Bulk);
        accepts(b"*2\r\n$3\r\nabc\r\n$0\r\n\r\n", Check::Bulks(2));
        for reply in [&b"+OK\r\n"[..], b":7\r\n", b"$-1\r\n", b"*-1\r\n"] {
            accepts(reply, Check::Any);
        }
        accepts(b"*3\r\n+OK\r\n*1\r\n$1\r\na\r\n:5\r\n", Check::Any);
    }

    #[test]
    fn wrong_replies_are_refused() {
        for (reply, wanted) in [
            (&b"-ERR no\r\n"[..], Check::Simple),
            (b"$2\r\nOK\r\n", Check::Simple),
            (b":1x\r\n", Check::Integer),
            (b"$12\r\n00000008abcd\r\n", value(7, 12)),
            (b"$11\r\n00000007abc\r\n", value(7, 12)),
            (b"$12\r\n00000007abcdXX", value(7, 12)),
            (b"$-1\r\n", value(7, 12)),
            (b"*3\r\n", Check::Array(4)),
            (b"*3\r\n", Check::Bulks(2)),
            (b"*1\r\n:1\r\n", Check::Bulks(1)),
            (b"$3\r\nabcde", Check::Bulk),
            (b":3\r\n", Check::Bulk),
            (b"-ERR no\r\n", Check::Any),
            (b"*2\r\n+OK\r\n-ERR no\r\n", Check::Any),
            (b"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", Check::Any),
            (b":111111111111111111111111\r\n", Check::Integer),
        ] {
            assert!(
                check(reply, wanted).is_err(),
                "{:?}",
                String::from_utf8_lossy(reply)
            );
        }
    }
}
