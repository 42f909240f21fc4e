//! A value to be written to a record, and where it will be stored.

use super::record::{self, INLINE, MAX_RECORD, PACKED};
use super::types::NewValue;
use rufous_datatype::object::Object;

/// A value to be written, of any type.
pub(super) enum New<'a> {
    String(NewValue<'a>),
    Object(Object),
}

/// A value whose location is decided.
pub(super) enum Placed<'a> {
    Inline(NewValue<'a>),
    Packed(u8, Vec<u8>),
    /// Kind and number.
    Outside(u8, [u8; 4]),
}

impl Placed<'_> {
    /// Kind, tag and the rest of the value part.
    #[inline]
    pub(super) fn parts(&self) -> (u8, Option<u8>, &[u8]) {
        match self {
            Placed::Inline(value) => (INLINE, None, value.bytes()),
            Placed::Packed(tag, packed) => (PACKED, Some(*tag), packed),
            Placed::Outside(kind, number) => (*kind, None, number),
        }
    }
}

pub(super) fn fits(key_part: usize, value: usize, expiry: Option<u64>) -> bool {
    record::size(key_part, value, expiry.is_some()) <= MAX_RECORD
}
