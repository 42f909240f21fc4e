//! An entry of a book whose value stands earlier in the same frame of a log: the slots of a transaction keep the same
//! of it, so a frame has it once. It stands for a [`Effect::Set`]; chains and copies have that itself.

use super::{Effect, NotAnEffect, byte, put_varint, slice, varint};
use crate::books;
use rufous_base::limits::BOOKS;
use std::ops::Range;

/// The tag. It is not one of effects: what it means depends on where it stands.
pub const REPEATED: u8 = 0x44;

/// Shorter values are written again.
pub(crate) const LEAST: usize = 64;

/// Appends to a frame that the entry with this name has the value which stands here in it.
pub(crate) fn encode(out: &mut Vec<u8>, name: &[u8], value: Range<usize>) {
    let back = out.len() - value.start;
    out.push(REPEATED);
    put_varint(out, back as u64);
    put_varint(out, value.len() as u64);
    put_varint(out, name.len() as u64);
    out.extend_from_slice(name);
}

/// Takes one off the front of `from`, which is the rest of a frame.
pub fn decode<'a>(frame: &'a [u8], from: &mut &'a [u8]) -> Result<Effect<'a>, NotAnEffect> {
    let before = frame.len().checked_sub(from.len()).ok_or(NotAnEffect)?;
    if byte(from)? != REPEATED {
        return Err(NotAnEffect);
    }
    let (back, len) = (varint(from)?, varint(from)?);
    let name_len = varint(from)?;
    let key = slice(from, name_len)?;
    books::entry_of_name(key).ok_or(NotAnEffect)?;
    let back = usize::try_from(back).map_err(|_| NotAnEffect)?;
    let start = before.checked_sub(back).ok_or(NotAnEffect)?;
    let mut rest = frame.get(start..before).ok_or(NotAnEffect)?;
    Ok(Effect::Set {
        db: BOOKS as u8,
        key,
        value: slice(&mut rest, len)?,
        expire_at: None,
    })
}
