//! Writing replies: every function appends one reply, or the head of an aggregate whose elements
//! the caller appends next, to an output vector.
//!
//! Where RESP2 and RESP3 differ, the connection's [`Proto`] decides; the caller says what it
//! means and never looks at the version itself.

use crate::number::format_double;

/// Protocol version of a connection: RESP2 until the client says `HELLO 3`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proto {
    #[default]
    Resp2,
    Resp3,
}

pub const OK: &[u8] = b"+OK\r\n";

/// Payloads up to this length are copied with their header after one reservation.
const SMALL: usize = 99;

#[inline]
pub fn ok(out: &mut Vec<u8>) {
    out.extend_from_slice(OK);
}

/// A short text without structure, `+text`. CR and LF become blanks.
pub fn simple(out: &mut Vec<u8>, text: impl AsRef<[u8]>) {
    line(out, b'+', text.as_ref());
}

/// An error, `-text`; `text` starts with its code, such as `ERR`. CR and LF become blanks, so that
/// text taken from a request cannot forge a reply.
pub fn error(out: &mut Vec<u8>, text: impl AsRef<[u8]>) {
    line(out, b'-', text.as_ref());
}

#[inline]
pub fn integer(out: &mut Vec<u8>, value: i64) {
    header(out, b':', value);
}

/// A binary-safe string.
#[inline]
pub fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = bytes.len();
    if len > SMALL {
        return long_bulk(out, bytes);
    }
    out.reserve(len + 7);
    if len < 10 {
        out.extend_from_slice(&[b'$', b'0' + len as u8, b'\r', b'\n']);
    } else {
        let (tens, units) = (len as u8 / 10, len as u8 % 10);
        out.extend_from_slice(&[b'$', b'0' + tens, b'0' + units, b'\r', b'\n']);
    }
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn long_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len() + 32);
    header(out, b'$', bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// The head of a bulk whose `len` bytes the caller appends, followed by [`bulk_end`]: for payloads
/// that are put together in place.
pub fn bulk_header(out: &mut Vec<u8>, len: usize) {
    header(out, b'$', len);
}

pub fn bulk_end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

/// No value.
#[inline]
pub fn null(out: &mut Vec<u8>, proto: Proto) {
    out.extend_from_slice(match proto {
        Proto::Resp2 => b"$-1\r\n",
        Proto::Resp3 => b"_\r\n",
    });
}

/// No array, where RESP2 tells it from no value.
pub fn null_array(out: &mut Vec<u8>, proto: Proto) {
    out.extend_from_slice(match proto {
        Proto::Resp2 => b"*-1\r\n",
        Proto::Resp3 => b"_\r\n",
    });
}

/// Head of an array of `len` replies.
#[inline]
pub fn array(out: &mut Vec<u8>, len: usize) {
    header(out, b'*', len);
}

/// Head of a map: `pairs` times a key and a value follow. RESP2: a flat array.
pub fn map(out: &mut Vec<u8>, proto: Proto, pairs: usize) {
    match proto {
        Proto::Resp2 => header(out, b'*', pairs * 2),
        Proto::Resp3 => header(out, b'%', pairs),
    }
}

/// Head of a set of `len` replies. RESP2: an array.
pub fn set(out: &mut Vec<u8>, proto: Proto, len: usize) {
    header(out, by_proto(proto, b'*', b'~'), len);
}

/// Head of a message that answers no request, such as one of a channel. RESP2: an array.
pub fn push(out: &mut Vec<u8>, proto: Proto, len: usize) {
    header(out, by_proto(proto, b'*', b'>'), len);
}

/// Head of attributes of the reply that comes after them. Returns whether the caller is to append
/// the pairs: RESP2 has no attributes, and nothing is written for it.
#[must_use]
pub fn attribute(out: &mut Vec<u8>, proto: Proto, pairs: usize) -> bool {
    if proto == Proto::Resp3 {
        header(out, b'|', pairs);
    }
    proto == Proto::Resp3
}

/// RESP2: a bulk with the same text.
pub fn double(out: &mut Vec<u8>, proto: Proto, value: f64) {
    let text = format_double(value);
    match proto {
        Proto::Resp2 => bulk(out, &text),
        Proto::Resp3 => line(out, b',', &text),
    }
}

/// RESP2: 1 or 0.
pub fn boolean(out: &mut Vec<u8>, proto: Proto, value: bool) {
    out.extend_from_slice(match (proto, value) {
        (Proto::Resp2, true) => b":1\r\n",
        (Proto::Resp2, false) => b":0\r\n",
        (Proto::Resp3, true) => b"#t\r\n",
        (Proto::Resp3, false) => b"#f\r\n",
    });
}

/// An integer of any size, as decimal text. RESP2: a bulk.
pub fn big_number(out: &mut Vec<u8>, proto: Proto, digits: &str) {
    match proto {
        Proto::Resp2 => bulk(out, digits.as_bytes()),
        Proto::Resp3 => line(out, b'(', digits.as_bytes()),
    }
}

/// Text for people to read, with its format, such as `txt` or `mkd`. RESP2: a bulk without it.
pub fn verbatim(out: &mut Vec<u8>, proto: Proto, format: [u8; 3], text: &[u8]) {
    if proto == Proto::Resp2 {
        return bulk(out, text);
    }
    out.reserve(text.len() + 32);
    header(out, b'=', text.len() + 4);
    out.extend_from_slice(&format);
    out.push(b':');
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

/// A request, as a client sends it.
pub fn request<A: AsRef<[u8]>>(out: &mut Vec<u8>, args: &[A]) {
    array(out, args.len());
    for arg in args {
        bulk(out, arg.as_ref());
    }
}

fn by_proto(proto: Proto, resp2: u8, resp3: u8) -> u8 {
    match proto {
        Proto::Resp2 => resp2,
        Proto::Resp3 => resp3,
    }
}

#[inline]
fn header(out: &mut Vec<u8>, kind: u8, number: impl itoa::Integer) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(number).as_bytes();
    out.reserve(digits.len() + 3);
    out.push(kind);
    out.extend_from_slice(digits);
    out.extend_from_slice(b"\r\n");
}

fn line(out: &mut Vec<u8>, kind: u8, text: &[u8]) {
    out.reserve(text.len() + 3);
    out.push(kind);
    let start = out.len();
    out.extend_from_slice(text);
    for byte in &mut out[start..] {
        if matches!(byte, b'\r' | b'\n') {
            *byte = b' ';
        }
    }
    out.extend_from_slice(b"\r\n");
}
