//! A packed list: how many elements there are, in a byte, and then the elements as a [pack](crate::pack).
//!
//! The count saves a walk over the elements when the length is read or an element is added. Nothing is written
//! for an empty list that has never had elements. These bytes are in memory only: files have elements.
//!
//! [`push`] and [`pop`] work on bytes wherever they lie, so that a record is changed in place.

use crate::pack::{self, Pack};

/// As many as the byte can count, or more.
const MANY: u8 = u8::MAX;
/// Where the elements begin.
pub(super) const START: usize = 1;

/// Bytes of a packed list.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a>(&'a [u8]);

impl<'a> Counted<'a> {
    #[inline]
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn bytes(self) -> &'a [u8] {
        self.0
    }

    #[inline]
    pub(super) fn pack(self) -> Pack<'a> {
        Pack(self.0.get(START..).unwrap_or_default())
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        match self.0.first() {
            None => 0,
            Some(&MANY) => self.pack().count(),
            Some(&count) => usize::from(count),
        }
    }

    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.0.len() <= START
    }

    #[inline]
    pub(super) fn last(self) -> Option<&'a [u8]> {
        self.pack().get(self.len().checked_sub(1)?)
    }

    /// Where in the bytes element `index` begins; that of the one that would come next is their end.
    #[inline]
    pub(super) fn offset_of(self, index: usize) -> Option<usize> {
        self.pack().offset_of(index).map(|offset| START + offset)
    }
}

/// Says that there are `count` elements.
#[inline]
pub(super) fn set_count(bytes: &mut [u8], count: usize) {
    bytes[0] = u8::try_from(count).unwrap_or(MANY);
}

/// Puts an element at the front or the back of the list that the first `len` bytes of `room` are; how many bytes it has
/// then. Nothing happens where there is no room.
#[inline]
pub(super) fn push(room: &mut [u8], len: usize, front: bool, element: &[u8]) -> Option<usize> {
    let new = len + pack::entry_size(element.len());
    if len < START || new > room.len() {
        return None;
    }
    let at = if front {
        room.copy_within(START..len, START + new - len);
        START
    } else {
        len
    };
    pack::write(&mut room[at..], element);
    // Once it is saturated it stays so until it is recounted.
    room[0] = room[0].saturating_add(1);
    Some(new)
}

/// Takes `count` elements, or as many as there are, off the front or the back; how many bytes the list has then.
#[inline]
pub(super) fn pop(room: &mut [u8], len: usize, front: bool, count: usize) -> usize {
    let list = Counted(&room[..len]);
    let have = list.len();
    let left = have.saturating_sub(count);
    // The end of what goes at the front, or the beginning of what goes at the back.
    let cut = list.offset_of(if front { have - left } else { left });
    let new = match cut {
        Some(cut) if left > 0 && front => {
            room.copy_within(cut..len, START);
            START + len - cut
        }
        Some(cut) if left > 0 => cut,
        _ => len.min(START),
    };
    if new > 0 {
        set_count(room, left);
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_beyond_what_the_byte_holds() {
        let mut room = [0; 1024];
        let (mut len, element) = (START, b"x");
        for count in 1..=300 {
            len = push(&mut room, len, count % 2 == 0, element).unwrap();
            assert_eq!(Counted::of(&room[..len]).len(), count);
        }
        for count in (0..300).rev() {
            len = pop(&mut room, len, count % 3 == 0, 1);
            assert_eq!(Counted::of(&room[..len]).len(), count);
        }
        assert!(Counted::of(&room[..len]).is_empty());
    }

    #[test]
    fn nothing_happens_without_room() {
        let mut room = [0; 8];
        let len = push(&mut room, START, true, b"abc").unwrap();
        let before = room;
        assert_eq!(push(&mut room, len, true, b"abc"), None);
        assert_eq!(room, before);
        assert_eq!(push(&mut room, len, false, b"ab"), Some(8));
        assert_eq!(pop(&mut room, 8, true, 9), START);
        assert_eq!(pop(&mut [], 0, true, 9), 0);
    }
}
