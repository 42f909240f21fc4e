//! Effects on entries of books: an entry is set, extended or deleted, and never has an expiry or a type. All other
//! effects, and other names in that database, are refused, wherever the bytes come from.

use super::{APPEND, DELETE, Effect, NotAnEffect, SET, byte, names, slice, varint};
use crate::books;
use rufous_base::limits::BOOKS;
use std::ops::Range;

/// The database byte of such an effect.
pub(super) const DB: u8 = BOOKS as u8;

/// Where the value of an entry is that these effects set first; `None` if they do not begin with that.
pub fn entry_set(effects: &[u8]) -> Option<Range<usize>> {
    let mut rest = effects.strip_prefix(&[SET, DB])?;
    let (key_len, value_len) = (varint(&mut rest).ok()?, varint(&mut rest).ok()?);
    slice(&mut rest, key_len).ok()?;
    let start = effects.len() - rest.len();
    let value = slice(&mut rest, value_len).ok()?;
    Some(start..start + value.len())
}

/// Decodes such an effect after its tag.
#[cold]
pub(super) fn decode<'a>(tag: u8, from: &mut &'a [u8]) -> Result<Effect<'a>, NotAnEffect> {
    let db = byte(from)?;
    if !matches!(tag, SET | DELETE | APPEND) {
        return Err(NotAnEffect);
    }
    let (key, value) = names(tag, from)?;
    books::entry_of_name(key).ok_or(NotAnEffect)?;
    Ok(match tag {
        SET => Effect::Set {
            db,
            key,
            value,
            expire_at: None,
        },
        DELETE => Effect::Delete { db, key },
        _ => Effect::Append {
            db,
            key,
            tail: value,
        },
    })
}
