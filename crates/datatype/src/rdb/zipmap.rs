//! Zipmaps, small hashes before Redis 2.6: fields and values with their lengths; a value may have
//! unused bytes after it.
//!
//! ```text
//! | pairs (1, 254 or more: unknown) | length | field | length | unused (1) | value | ... | 0xff |
//! ```

use super::RdbError;
use super::read::Reader;

const END: u8 = 0xff;
/// Announces a length of four bytes.
const LONG: u8 = 0xfe;

/// Gives each pair to `each`; returns how many there are.
pub(super) fn pairs<'a>(
    bytes: &'a [u8],
    mut each: impl FnMut(&'a [u8], &'a [u8]) -> Result<(), RdbError>,
) -> Result<usize, RdbError> {
    let mut reader = Reader::new(bytes);
    let declared = reader.byte()?;
    let mut count = 0;
    while let Some(len) = length(&mut reader)? {
        let field = reader.take(len)?;
        let len = length(&mut reader)?.ok_or(RdbError::Malformed)?;
        let unused = reader.byte()?;
        let value = reader.take(len)?;
        reader.take(usize::from(unused))?;
        each(field, value)?;
        count += 1;
    }
    match reader.is_empty() && (declared >= LONG || usize::from(declared) == count) {
        true => Ok(count),
        false => Err(RdbError::Malformed),
    }
}

fn length(reader: &mut Reader<'_>) -> Result<Option<usize>, RdbError> {
    Ok(match reader.byte()? {
        END => None,
        LONG => Some(reader.u32()? as usize),
        len => Some(usize::from(len)),
    })
}
