//! How an element lies in memory.
//!
//! ```text
//! element  varint key length, varint value length, key, value
//! stub     0x80 0x00, index (4 bytes, little-endian): the element lies outside of the heap
//! ```
//!
//! A varint has seven bits a byte, the low ones first. A stub begins with a zero written too long, which no
//! element does.

use std::ops::Range;
use std::sync::Arc;

/// Elements of more bytes than this (with their lengths) lie outside of the heap, so that nothing copies them.
pub(super) const OUTSIDE_ABOVE: usize = 4096;

const STUB: [u8; 2] = [0x80, 0x00];
pub(super) const STUB_BYTES: usize = 6;

/// Where key and value lie, counted from the start of the element.
pub(super) struct Parts {
    pub(super) key: Range<usize>,
    pub(super) value: Range<usize>,
}

/// What the bytes at an offset of the heap begin with.
pub(super) enum Stored<'a> {
    /// The element's bytes.
    Inside(&'a [u8]),
    /// The index of an element outside.
    Outside(usize),
}

pub(super) fn size(key: &[u8], value: &[u8]) -> usize {
    varint_size(key.len()) + varint_size(value.len()) + key.len() + value.len()
}

/// What an element of this size takes in the heap.
pub(super) fn heap_size(size: usize) -> usize {
    if size > OUTSIDE_ABOVE {
        STUB_BYTES
    } else {
        size
    }
}

#[inline]
pub(super) fn write(out: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    write_varint(out, key.len());
    write_varint(out, value.len());
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

pub(super) fn outside(key: &[u8], value: &[u8]) -> Arc<[u8]> {
    let mut bytes = Vec::with_capacity(size(key, value));
    write(&mut bytes, key, value);
    bytes.into()
}

pub(super) fn write_stub(out: &mut Vec<u8>, index: usize) {
    out.extend_from_slice(&STUB);
    out.extend_from_slice(&(index as u32).to_le_bytes());
}

#[inline]
pub(super) fn stored(bytes: &[u8]) -> Stored<'_> {
    if bytes.starts_with(&STUB) {
        let index = [bytes[2], bytes[3], bytes[4], bytes[5]];
        return Stored::Outside(u32::from_le_bytes(index) as usize);
    }
    let end = parts(bytes).value.end;
    Stored::Inside(&bytes[..end])
}

#[inline]
pub(super) fn parts(element: &[u8]) -> Parts {
    let (key_len, value_len, start) = match *element {
        [key_len, value_len, ..] if (key_len | value_len) < 0x80 => {
            (usize::from(key_len), usize::from(value_len), 2)
        }
        _ => {
            let (key_len, at) = read_varint(element, 0);
            let (value_len, at) = read_varint(element, at);
            (key_len, value_len, at)
        }
    };
    let middle = start + key_len;
    Parts {
        key: start..middle,
        value: middle..middle + value_len,
    }
}

fn varint_size(number: usize) -> usize {
    let bits = (usize::BITS - number.leading_zeros()).max(1) as usize;
    bits.div_ceil(7)
}

#[inline]
fn write_varint(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn read_varint(bytes: &[u8], mut at: usize) -> (usize, usize) {
    let mut number = 0;
    let mut shift = 0;
    loop {
        let byte = bytes[at];
        at += 1;
        number |= usize::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return (number, at);
        }
        shift += 7;
    }
}
