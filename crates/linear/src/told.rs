//! What the slots of a transaction tell its client, and what they add for later slots: opaque bytes of each slot, framed
//! with the slot; the first slot joins what the client is told. A slot that applies a transaction again takes what the later
//! ones have told out of what an earlier one knows.

use crate::codec::{put_varint, slice, varint};
use std::sync::Arc;

/// Nothing.
pub(crate) fn nothing() -> Arc<[u8]> {
    Arc::default()
}

/// What a slot tells, before that of the later ones.
pub(crate) fn joined(slot: u16, piece: &[u8], later: &Arc<[u8]>) -> Arc<[u8]> {
    if piece.is_empty() {
        return Arc::clone(later);
    }
    let mut all = Vec::with_capacity(piece.len() + later.len() + 8);
    put_varint(&mut all, u64::from(slot));
    put_varint(&mut all, piece.len() as u64);
    all.extend_from_slice(piece);
    all.extend_from_slice(later);
    all.into()
}

/// What some slots tell, before that of later ones.
pub(crate) fn together(earlier: &[u8], later: &[u8]) -> Arc<[u8]> {
    [earlier, later].concat().into()
}

/// What later slots have told, of what is told in their order.
pub fn after(told: &Arc<[u8]>, is_later: impl Fn(u16) -> bool) -> Arc<[u8]> {
    let mut rest: &[u8] = told;
    let mut whole = rest;
    while let Some((of, _)) = piece(&mut rest) {
        if u16::try_from(of).is_ok_and(&is_later) {
            return if whole.len() == told.len() {
                Arc::clone(told)
            } else {
                whole.into()
            };
        }
        whole = rest;
    }
    nothing()
}

/// What the client gets.
pub(crate) fn plain(told: &[u8]) -> Arc<[u8]> {
    let mut rest = told;
    let mut all = Vec::with_capacity(told.len());
    while let Some((_, piece)) = piece(&mut rest) {
        all.extend_from_slice(piece);
    }
    all.into()
}

/// What each slot has told, or added.
pub fn pieces(all: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = all;
    std::iter::from_fn(move || {
        let (slot, piece) = piece(&mut rest)?;
        Some((u16::try_from(slot).ok()?, piece))
    })
}

fn piece<'a>(from: &mut &'a [u8]) -> Option<(u64, &'a [u8])> {
    let slot = varint(from)?;
    let len = varint(from)?;
    Some((slot, slice(from, len)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slot_may_tell_something_and_what_later_ones_have_told_can_be_taken_out() {
        let last = joined(300, &[7; 200], &nothing());
        let middle = joined(20, b"", &last);
        assert_eq!(middle, last);
        let first = joined(3, b"ab", &middle);
        assert_eq!(plain(&first)[..], [b"ab".as_slice(), &[7; 200]].concat());
        assert_eq!(after(&first, |of| of > 2), first);
        for slot in [3, 20, 299] {
            assert_eq!(after(&first, |of| of > slot), last, "{slot}");
        }
        assert_eq!(after(&first, |of| of > 300), nothing());
        let all: Vec<_> = pieces(&first).collect();
        assert_eq!(all, [(3, b"ab".as_slice()), (300, &[7; 200])]);
        // What another node has sent is not trusted.
        assert_eq!(plain(&[1, 200, 1]), nothing());
    }
}
