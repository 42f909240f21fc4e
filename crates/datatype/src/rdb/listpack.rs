//! Listpacks: integers and strings one after the other, each followed by its own length, which is
//! read backwards.
//!
//! ```text
//! | total bytes (4) | entries (2, 65535: unknown) | entry ... | 0xff |
//! entry: | head, with a short integer or a length | data | length of both, 1 to 5 bytes |
//! ```

use super::RdbError;
use super::read::{Item, Reader};

const END: u8 = 0xff;
const UNKNOWN_COUNT: u16 = u16::MAX;

/// Gives each entry to `each`; returns how many there are.
pub(super) fn entries<'a>(
    bytes: &'a [u8],
    mut each: impl FnMut(Item<'a>) -> Result<(), RdbError>,
) -> Result<usize, RdbError> {
    let mut reader = Reader::new(bytes);
    let (total, declared) = (reader.u32()?, reader.u16()?);
    if total as usize != bytes.len() {
        return Err(RdbError::Malformed);
    }
    let mut count = 0;
    loop {
        let before = reader.len();
        let head = reader.byte()?;
        if head == END {
            break;
        }
        let item = entry(head, &mut reader)?;
        check_backwards_length(before - reader.len(), &mut reader)?;
        each(item)?;
        count += 1;
    }
    match reader.is_empty() && (declared == UNKNOWN_COUNT || usize::from(declared) == count) {
        true => Ok(count),
        false => Err(RdbError::Malformed),
    }
}

fn entry<'a>(head: u8, reader: &mut Reader<'a>) -> Result<Item<'a>, RdbError> {
    Ok(match head {
        0..0x80 => Item::Integer(head.into()),
        0x80..0xc0 => Item::Bytes(reader.take(usize::from(head & 0x3f))?),
        0xc0..0xe0 => {
            // 13 bits with a sign.
            let bits = u16::from(head & 0x1f) << 8 | u16::from(reader.byte()?);
            Item::Integer(((bits << 3) as i16 >> 3).into())
        }
        0xe0..0xf0 => {
            let len = usize::from(head & 0x0f) << 8 | usize::from(reader.byte()?);
            Item::Bytes(reader.take(len)?)
        }
        0xf0 => {
            let len = reader.u32()? as usize;
            Item::Bytes(reader.take(len)?)
        }
        0xf1 => Item::Integer(reader.signed::<2>()?),
        0xf2 => Item::Integer(reader.signed::<3>()?),
        0xf3 => Item::Integer(reader.signed::<4>()?),
        0xf4 => Item::Integer(reader.signed::<8>()?),
        _ => return Err(RdbError::Malformed),
    })
}

/// Seven bits a byte, the highest first; all but the first have the top bit set.
fn check_backwards_length(len: usize, reader: &mut Reader<'_>) -> Result<(), RdbError> {
    // From these lengths on, an entry takes one byte more. (Not quite powers of two in Redis.)
    const MORE: [usize; 4] = [128, 16_383, 2_097_151, 268_435_455];
    let width = 1 + MORE.iter().filter(|from| len >= **from).count();
    let written = reader.take(width)?;
    let fits = written.iter().enumerate().all(|(at, byte)| {
        let part = (len >> (7 * (width - 1 - at))) as u8 & 0x7f;
        *byte == if at == 0 { part } else { part | 0x80 }
    });
    match fits {
        true => Ok(()),
        false => Err(RdbError::Malformed),
    }
}
