//! Effects on entries of books: an entry is set, extended or deleted, and never has an expiry or a type. All other
//! effects, and other names in that database, are refused, wherever the bytes come from.

use super::{APPEND, DELETE, Effect, NotAnEffect, SET, byte, names};
use crate::books;
use rufous_base::limits::BOOKS;

/// The database byte of such an effect.
pub(super) const DB: u8 = BOOKS as u8;

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
