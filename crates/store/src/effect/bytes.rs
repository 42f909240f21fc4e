//! Numbers and bytes in the encoding of effects and log entries.

use super::NotAnEffect;
use rufous_base::limits::DATABASES;

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

/// A database of clients.
pub(super) fn database(from: &mut &[u8]) -> Result<u8, NotAnEffect> {
    let db = byte(from)?;
    if usize::from(db) < DATABASES {
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
