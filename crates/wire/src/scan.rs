//! Counts the fields in a message's bytes before they are decoded.
//!
//! Two bytes can be a field that takes fifty when decoded, so with a limit on a frame's bytes alone
//! a peer could make us allocate twenty times as much.

/// Limit on the fields of one message, which in effect limits its repeated ones.
pub(crate) const MAX_FIELDS: usize = 65_536;

/// Varints, numbers of fixed size and bytes: the wire types that are in use.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;
const FIXED32: u64 = 5;

/// Whether these bytes may be decoded as an envelope: some numbers and one body with at most
/// [`MAX_FIELDS`] fields.
pub(crate) fn is_bounded(envelope: &[u8]) -> bool {
    let mut bodies = 0;
    for field in (Fields { rest: envelope }) {
        let inner = match field {
            Ok(Some(inner)) => inner,
            Ok(None) => continue,
            Err(Broken) => return false,
        };
        // A second body of the same kind would be merged into the first.
        bodies += 1;
        if bodies > 1 || !has_few(inner) {
            return false;
        }
    }
    true
}

pub(crate) fn has_few(body: &[u8]) -> bool {
    let mut count = 0;
    Fields { rest: body }.all(|field| {
        count += 1;
        field.is_ok() && count <= MAX_FIELDS
    })
}

struct Broken;

/// Iterates over fields; returns those of type bytes.
struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Option<&'a [u8]>, Broken>;

    fn next(&mut self) -> Option<Self::Item> {
        (!self.rest.is_empty()).then(|| self.field().ok_or(Broken))
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Option<Option<&'a [u8]>> {
        match self.varint()? & 7 {
            VARINT => self.varint().map(|_| None),
            FIXED64 => self.take(8).map(|_| None),
            FIXED32 => self.take(4).map(|_| None),
            BYTES => {
                let len = usize::try_from(self.varint()?).ok()?;
                self.take(len).map(Some)
            }
            _ => None,
        }
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Body, Envelope, Item, Items};
    use prost::Message;

    fn items(count: usize) -> Vec<u8> {
        let items = vec![Item::default(); count];
        let items = Items {
            items,
            ..Items::default()
        };
        let body = Some(Body::Items(items));
        let envelope = Envelope {
            epoch: 1,
            body,
            ..Envelope::default()
        };
        envelope.encode_to_vec()
    }

    #[test]
    fn as_many_fields_as_allowed_pass_and_one_more_does_not() {
        assert!(is_bounded(&items(MAX_FIELDS)));
        assert!(!is_bounded(&items(MAX_FIELDS + 1)));
    }

    #[test]
    fn a_second_body_does_not_pass() {
        let one = items(40_000);
        assert!(is_bounded(&one));
        assert!(!is_bounded(&[one.clone(), one].concat()));
    }

    #[test]
    fn what_is_cut_or_in_groups_does_not_pass() {
        let whole = items(3);
        for len in (0..whole.len()).filter(|len| ![0, 2].contains(len)) {
            assert!(!is_bounded(&whole[..len]), "{len}");
        }
        assert!(!is_bounded(&[0x0b, 0x0c]));
        assert!(!is_bounded(&[0xff; 11]));
    }
}
