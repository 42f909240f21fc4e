//! Sets of integers in ascending order, all of the same width.
//!
//! ```text
//! | width: 2, 4 or 8 (4) | integers (4) | integer ... |
//! ```

use super::RdbError;
use super::read::Reader;

/// Gives each integer to `each`.
pub(super) fn integers(
    bytes: &[u8],
    mut each: impl FnMut(i64) -> Result<(), RdbError>,
) -> Result<(), RdbError> {
    let mut reader = Reader::new(bytes);
    let (width, count) = (reader.u32()?, reader.u32()?);
    if u64::from(width) * u64::from(count) != reader.len() as u64 {
        return Err(RdbError::Malformed);
    }
    let mut last = None;
    while !reader.is_empty() {
        let number = match width {
            2 => reader.signed::<2>()?,
            4 => reader.signed::<4>()?,
            8 => reader.signed::<8>()?,
            _ => return Err(RdbError::Malformed),
        };
        if last.is_some_and(|last| last >= number) {
            return Err(RdbError::Malformed);
        }
        last = Some(number);
        each(number)?;
    }
    Ok(())
}
