//! Ziplists, what listpacks were before Redis 7: each entry begins with the length of the one
//! before it.
//!
//! ```text
//! | total bytes (4) | offset of the last entry (4) | entries (2, 65535: unknown) | entry ... | 0xff |
//! entry: | length of the one before (1, or 0xfe and 4) | head, with a short integer or a length | data |
//! ```

use super::RdbError;
use super::read::{Item, Reader};

const HEADER_LEN: usize = 10;
const END: u8 = 0xff;
/// Announces a length of four bytes.
const LONG: u8 = 0xfe;
const UNKNOWN_COUNT: u16 = u16::MAX;

/// Gives each entry to `each`; returns how many there are.
pub(super) fn entries<'a>(
    bytes: &'a [u8],
    mut each: impl FnMut(Item<'a>) -> Result<(), RdbError>,
) -> Result<usize, RdbError> {
    let mut reader = Reader::new(bytes);
    let (total, tail, declared) = (reader.u32()?, reader.u32()?, reader.u16()?);
    if total as usize != bytes.len() {
        return Err(RdbError::Malformed);
    }
    let (mut count, mut last_len) = (0, 0);
    loop {
        let before = reader.len();
        let first = reader.byte()?;
        if first == END {
            break;
        }
        let previous_len = match first {
            LONG => reader.u32()? as usize,
            len => usize::from(len),
        };
        if previous_len != last_len {
            return Err(RdbError::Malformed);
        }
        let head = reader.byte()?;
        each(entry(head, &mut reader)?)?;
        last_len = before - reader.len();
        count += 1;
    }
    // The end was the last byte.
    let last_at = bytes.len() - 1 - last_len;
    let fits = reader.is_empty()
        && tail as usize == last_at.max(HEADER_LEN)
        && (declared == UNKNOWN_COUNT || usize::from(declared) == count);
    match fits {
        true => Ok(count),
        false => Err(RdbError::Malformed),
    }
}

fn entry<'a>(head: u8, reader: &mut Reader<'a>) -> Result<Item<'a>, RdbError> {
    Ok(match head {
        0..0x40 => Item::Bytes(reader.take(usize::from(head))?),
        0x40..0x80 => {
            let len = usize::from(head & 0x3f) << 8 | usize::from(reader.byte()?);
            Item::Bytes(reader.take(len)?)
        }
        0x80 => {
            let len = u32::from_be_bytes(reader.array()?) as usize;
            Item::Bytes(reader.take(len)?)
        }
        0xc0 => Item::Integer(reader.signed::<2>()?),
        0xd0 => Item::Integer(reader.signed::<4>()?),
        0xe0 => Item::Integer(reader.signed::<8>()?),
        0xf0 => Item::Integer(reader.signed::<3>()?),
        0xfe => Item::Integer(reader.signed::<1>()?),
        0xf1..=0xfd => Item::Integer(i64::from(head & 0x0f) - 1),
        _ => return Err(RdbError::Malformed),
    })
}
