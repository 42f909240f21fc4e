//! Reads encoded siblings without decoding everything.

use super::{COUNTED, DEADLINE, EXPIRED, take_bytes};
use crate::code::{Malformed, Reader};
use crate::{Counter, Stamp, VersionVector};

/// The vector of an encoded state.
pub fn seen_of(bytes: &[u8]) -> Result<VersionVector, Malformed> {
    VersionVector::read(&mut Reader(bytes))
}

/// The texts of an encoded state, the latest first, without copying them.
pub fn texts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    timed(bytes).map(|(text, _)| text)
}

/// The texts, each with its deadline in Unix milliseconds, or 0.
pub fn timed(bytes: &[u8]) -> impl Iterator<Item = (&[u8], u64)> {
    let mut reader = Reader(bytes);
    let count = skip_seen(&mut reader).and_then(|()| reader.varint());
    let all = (0..count.unwrap_or(0)).map_while(move |_| read_text(&mut reader).ok());
    all.flatten()
}

/// Number of values that an encoded state shows.
pub fn len(bytes: &[u8]) -> usize {
    timed(bytes).count()
}

/// When the next value expires.
pub fn next_deadline(bytes: &[u8]) -> Option<u64> {
    let deadlines = timed(bytes).map(|(_, deadline)| deadline);
    deadlines.filter(|&at| at > 0).min()
}

fn skip_seen(reader: &mut Reader<'_>) -> Result<(), Malformed> {
    let entries = reader.varint()?;
    let bytes = entries.checked_mul(Stamp::SIZE as u64).ok_or(Malformed)?;
    reader.bytes(bytes).map(drop)
}

/// A write's text and deadline; `None` if it has expired.
fn read_text<'a>(reader: &mut Reader<'a>) -> Result<Option<(&'a [u8], u64)>, Malformed> {
    Stamp::read(reader)?;
    let form = reader.byte()?;
    let text = take_bytes(reader)?;
    let mut deadline = 0;
    if form & DEADLINE != 0 {
        Stamp::read(reader)?;
        deadline = reader.varint()?;
    }
    if form & COUNTED != 0 {
        take_bytes(reader)?;
        Counter::read(reader)?;
    }
    Ok((form & EXPIRED == 0).then_some((text, deadline)))
}
