//! The layout of a small replicated collection in a record.
//!
//! ```text
//! plain     as the plain type packs what is shown
//! stamps    12 bytes for each of its elements, in its order; zeros for those that are aside
//! aside     names and encoded values of what is no plain write or is not shown
//! deadline  32 bytes, where there was one, and 12 for each cut before
//! lengths   of plain and of aside, 2 bytes each, little-endian; the last byte's highest bit: a deadline;
//!           the next two: how many cuts before
//! ```
//!
//! A collection that was never written has no bytes.

use super::Element;
use super::state::{Inner, PlainState};
use crate::algebra::{DataType, MAX_PACKED};
use crate::table::Table;
use rufous_lattice::{Coded, Deadline, Deadlines, Stamp};

const LENGTHS: usize = 4;
const TIMED: u8 = 0x80;
const EARLIER: u32 = 5;
/// The bits of the last byte that belong to the length.
const LENGTH: u8 = (1 << EARLIER) - 1;

const _: () = assert!(Deadlines::MOST < 4 && MAX_PACKED < (LENGTH as usize + 1) << 8);

/// Bytes of a deadline with this many cuts before.
fn deadlines_size(earlier: usize) -> usize {
    Deadline::SIZE + earlier * Stamp::SIZE
}

/// The parts of packed bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Layout<'a> {
    pub(super) plain: &'a [u8],
    pub(super) stamps: &'a [u8],
    pub(super) aside: &'a [u8],
    pub(super) deadline: Deadlines,
}

impl<'a> Layout<'a> {
    /// Splits the bytes that [`close`] has made; of other bytes, the parts are empty.
    #[inline]
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        Self::split(bytes).unwrap_or_default()
    }

    #[inline]
    fn split(bytes: &'a [u8]) -> Option<Self> {
        let (rest, &[a, b, c, d]) = bytes.split_last_chunk::<LENGTHS>()?;
        let (rest, deadline) = if d & TIMED > 0 {
            let size = deadlines_size(usize::from((d & !TIMED) >> EARLIER));
            let (rest, deadline) = rest.split_at_checked(rest.len().checked_sub(size)?)?;
            (rest, Deadlines::decode(deadline).ok()?)
        } else {
            (rest, Deadlines::default())
        };
        let aside = usize::from(u16::from_le_bytes([c, d & LENGTH]));
        let (rest, aside) = rest.split_at_checked(rest.len().checked_sub(aside)?)?;
        let (plain, stamps) = rest.split_at_checked(u16::from_le_bytes([a, b]).into())?;
        Some(Self {
            plain,
            stamps,
            aside,
            deadline,
        })
    }
}

/// Decodes packed bytes, to change the collection.
pub(super) fn open<E: Element>(mut bytes: Vec<u8>) -> Inner<PlainState<E>> {
    let layout = Layout::of(&bytes);
    let stamps = layout.stamps.to_vec();
    let aside = Table::Packed(layout.aside.to_vec());
    let (deadline, len) = (layout.deadline, layout.plain.len());
    bytes.truncate(len);
    let mut inner = Inner::opened(E::Plain::from_packed(bytes), stamps, aside);
    inner.deadline = deadline;
    inner
}

/// Whether [`Inner::may_make_way`], without decoding if nothing is aside.
pub(super) fn may_make_way<E: Element>(bytes: &[u8], horizon: u64) -> bool {
    let layout = Layout::of(bytes);
    let is_plain = layout.aside.is_empty() && layout.deadline == Deadlines::default();
    !is_plain && open::<E>(bytes.to_vec()).may_make_way::<E>(horizon)
}

/// Its size when packed, if it can be packed.
pub(super) fn size<E: Element>(inner: &Inner<PlainState<E>>) -> Option<usize> {
    let plain = E::Plain::packed(&inner.plain)?;
    let aside = inner.aside.packed()?;
    let timed = inner.deadline != Deadlines::default();
    let deadline = if timed {
        deadlines_size(inner.deadline.earlier())
    } else {
        0
    };
    let size = plain.len() + inner.stamps.len() + aside.len() + deadline + LENGTHS;
    (inner.gone.is_none() && size <= MAX_PACKED).then_some(size)
}

/// Packs a collection for which [`size`] has returned `size`.
pub(super) fn close<E: Element>(inner: Inner<PlainState<E>>, size: usize) -> Vec<u8> {
    let is_bottom = inner.is_bottom::<E>();
    let mut bytes = E::Plain::into_buffer(inner.plain).unwrap_or_default();
    if is_bottom {
        bytes.clear();
        return bytes;
    }
    let plain = bytes.len();
    bytes.reserve(size.saturating_sub(plain));
    bytes.extend_from_slice(&inner.stamps);
    let aside = inner.aside.packed().unwrap_or_default();
    bytes.extend_from_slice(aside);
    let timed = inner.deadline != Deadlines::default();
    if timed {
        inner.deadline.encode(&mut bytes);
    }
    // Both are below MAX_PACKED.
    let [a, b] = (plain as u16).to_le_bytes();
    let [c, d] = (aside.len() as u16).to_le_bytes();
    let earlier = (inner.deadline.earlier() as u8) << EARLIER;
    let d = if timed { d | TIMED | earlier } else { d };
    bytes.extend_from_slice(&[a, b, c, d]);
    bytes
}

/// A stamp from the packed stamps.
pub(super) fn stamp_at(stamps: &[u8], index: usize) -> Stamp {
    let at = stamps.get(index * Stamp::SIZE..);
    let stamp = at.and_then(<[u8]>::first_chunk);
    stamp.map_or(Stamp::ZERO, |&stamp| Stamp::from_bytes(stamp))
}
