//! Numbers and bytes in the encoding of effects and log entries.

use super::{DELETE, EXPIRE, NotAnEffect, PERSIST};
use rufous_datatype::object::Tag;
use rufous_lattice::Stamp;

/// Seven bits a byte, low bits first.
pub fn put_varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

pub fn varint(from: &mut &[u8]) -> Result<u64, NotAnEffect> {
    let mut n = 0u64;
    for shift in (0..64).step_by(7) {
        let next = byte(from)?;
        let bits = u64::from(next & 0x7F);
        if shift == 63 && bits > 1 {
            return Err(NotAnEffect);
        }
        n |= bits << shift;
        if next < 0x80 {
            return Ok(n);
        }
    }
    Err(NotAnEffect)
}

pub fn byte(from: &mut &[u8]) -> Result<u8, NotAnEffect> {
    let (&first, rest) = from.split_first().ok_or(NotAnEffect)?;
    *from = rest;
    Ok(first)
}

pub(super) fn database(from: &mut &[u8]) -> Result<u8, NotAnEffect> {
    let db = byte(from)?;
    if usize::from(db) < rufous_base::limits::DATABASES {
        return Ok(db);
    }
    Err(NotAnEffect)
}

pub fn slice<'a>(from: &mut &'a [u8], len: u64) -> Result<&'a [u8], NotAnEffect> {
    let len = usize::try_from(len).map_err(|_| NotAnEffect)?;
    let (head, rest) = from.split_at_checked(len).ok_or(NotAnEffect)?;
    *from = rest;
    Ok(head)
}

pub fn word(from: &mut &[u8]) -> Result<u64, NotAnEffect> {
    let (head, rest) = from.split_first_chunk().ok_or(NotAnEffect)?;
    *from = rest;
    Ok(u64::from_le_bytes(*head))
}

/// Encodes an operation with a key and a value.
#[inline]
pub(super) fn parts(out: &mut Vec<u8>, tag: u8, db: u8, key: &[u8], value: &[u8]) {
    out.reserve(2 + 20 + key.len() + value.len() + 8);
    out.extend_from_slice(&[tag, db]);
    put_varint(out, key.len() as u64);
    if !matches!(tag, DELETE | EXPIRE | PERSIST) {
        put_varint(out, value.len() as u64);
    }
    out.extend_from_slice(key);
    out.extend_from_slice(value);
}

/// Encodes a note about a key's values of one type, up to a stamp.
pub(super) fn stamped(
    out: &mut Vec<u8>,
    kind: u8,
    (db, key): (u8, &[u8]),
    (tag, stamp): (Tag, Stamp),
) {
    out.extend_from_slice(&[kind, db]);
    put_varint(out, key.len() as u64);
    out.extend_from_slice(key);
    out.push(tag as u8);
    out.extend_from_slice(&stamp.to_bytes());
}

/// Encodes an operation of a type.
#[inline]
pub(super) fn typed(out: &mut Vec<u8>, kind: u8, db: u8, key: &[u8], (tag, bytes): (Tag, &[u8])) {
    out.reserve(3 + 20 + key.len() + bytes.len() + 8);
    out.extend_from_slice(&[kind, db]);
    put_varint(out, key.len() as u64);
    put_varint(out, bytes.len() as u64 + 1);
    out.extend_from_slice(key);
    out.push(tag as u8);
    out.extend_from_slice(bytes);
}
