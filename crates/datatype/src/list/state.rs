//! Lists as they lie in memory: packed, or a sequence of shared pieces.

use super::counted::{self, Counted, START};
use crate::algebra::{MAX_PACKED, Tuning};
use crate::pack::{self, Pack};
use crate::seq::{self, Seq};
use std::ops::Range;

/// What is taken out of a large list and has more bytes than this is put aside rather than dropped.
const WASTE_BYTES: usize = 64 << 10;

/// A list that is owned.
#[derive(Debug)]
pub enum State {
    /// As [`counted`] says.
    Packed(Vec<u8>),
    Large {
        seq: Seq,
        /// What was taken out as a whole and takes time to drop.
        waste: Option<Box<Seq>>,
    },
}

impl Clone for State {
    fn clone(&self) -> Self {
        match self {
            State::Packed(buf) => State::Packed(buf.clone()),
            State::Large { seq, .. } => State::large(seq.clone()),
        }
    }
}

/// A list to be read.
#[derive(Clone, Copy, Debug)]
pub enum View<'a> {
    Packed(Counted<'a>),
    Large(&'a Seq),
}

impl<'a> View<'a> {
    /// What the view shows, to be kept; what is large is shared.
    pub fn to_state(self) -> State {
        match self {
            View::Packed(list) => State::Packed(list.bytes().to_vec()),
            View::Large(seq) => State::large(seq.clone()),
        }
    }

    /// How many elements there are.
    #[inline]
    pub fn len(self) -> usize {
        match self {
            View::Packed(list) => list.len(),
            View::Large(seq) => seq.len(),
        }
    }

    #[inline]
    pub fn is_empty(self) -> bool {
        match self {
            View::Packed(list) => list.is_empty(),
            View::Large(seq) => seq.is_empty(),
        }
    }

    /// The element at `index`, counted from the front.
    #[inline]
    pub fn get(self, index: usize) -> Option<&'a [u8]> {
        match self {
            View::Packed(list) => list.pack().get(index),
            View::Large(seq) => seq.get(index),
        }
    }

    /// The last element.
    #[inline]
    pub fn last(self) -> Option<&'a [u8]> {
        match self {
            View::Packed(list) => list.last(),
            View::Large(seq) => seq.get(seq.len().checked_sub(1)?),
        }
    }

    /// The place that an index of Redis means: a negative one counts from the end.
    #[inline]
    pub fn place(self, index: i64) -> Option<usize> {
        let len = self.len() as i64;
        let place = if index < 0 { len + index } else { index };
        (0..len).contains(&place).then_some(place as usize)
    }

    /// The element that an index of Redis means.
    #[inline]
    pub fn at(self, index: i64) -> Option<&'a [u8]> {
        match usize::try_from(index) {
            Ok(index) => self.get(index),
            Err(_) if index == -1 => self.last(),
            Err(_) => self.get(self.place(index)?),
        }
    }

    /// The places from `start` to `stop`, as Redis means them.
    #[inline]
    pub fn places(self, start: i64, stop: i64) -> Range<usize> {
        places(start, stop, self.len())
    }

    /// The elements in order.
    #[inline]
    pub fn iter(self) -> Iter<'a> {
        self.iter_from(0)
    }

    /// The elements from place `index` on.
    #[inline]
    pub fn iter_from(self, index: usize) -> Iter<'a> {
        match self {
            View::Packed(list) => {
                let pack = list.pack();
                let offset = pack.offset_of(index).unwrap_or(pack.0.len());
                Iter::Packed(Pack(&pack.0[offset..]).iter())
            }
            View::Large(seq) => Iter::Large(seq.iter_from(index)),
        }
    }

    /// The elements from the last to the first.
    pub fn iter_back(self) -> IterBack<'a> {
        match self {
            View::Packed(list) => {
                IterBack::Packed(list.pack().iter().collect::<Vec<_>>().into_iter())
            }
            View::Large(seq) => IterBack::Large(Box::new(seq.iter_back_from(usize::MAX))),
        }
    }
}

/// The places from `start` to `stop`, as Redis means them, of a list of `len` elements.
#[inline]
pub fn places(start: i64, stop: i64, len: usize) -> Range<usize> {
    let len = len as i64;
    let from = if start < 0 {
        (start + len).max(0)
    } else {
        start
    };
    let to = if stop < 0 {
        stop + len
    } else {
        stop.min(len - 1)
    };
    if from > to || from >= len {
        return 0..0;
    }
    from as usize..to as usize + 1
}

/// See [`View::iter_from`].
#[derive(Clone, Debug)]
pub enum Iter<'a> {
    Packed(pack::Iter<'a>),
    Large(seq::Iter<'a>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        match self {
            Iter::Packed(iter) => iter.next(),
            Iter::Large(iter) => iter.next(),
        }
    }
}

/// See [`View::iter_back`].
#[derive(Clone, Debug)]
pub enum IterBack<'a> {
    Packed(std::vec::IntoIter<&'a [u8]>),
    Large(Box<seq::IterBack<'a>>),
}

impl<'a> Iterator for IterBack<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        match self {
            IterBack::Packed(iter) => iter.next_back(),
            IterBack::Large(iter) => iter.next(),
        }
    }
}

impl State {
    fn large(seq: Seq) -> Self {
        State::Large { seq, waste: None }
    }

    /// The elements of a valid pack, packed.
    pub(super) fn packed(elements: Pack<'_>) -> Self {
        let mut buf = vec![0];
        buf.extend_from_slice(elements.0);
        counted::set_count(&mut buf, elements.count());
        State::Packed(buf)
    }

    #[inline]
    pub fn view(&self) -> View<'_> {
        match self {
            State::Packed(buf) => View::Packed(Counted::of(buf)),
            State::Large { seq, .. } => View::Large(seq),
        }
    }

    /// Puts an element at the front or the back.
    #[inline]
    pub(super) fn push(&mut self, front: bool, element: &[u8], tuning: &Tuning) {
        match self {
            State::Packed(buf) if fits(buf, 0, element.len(), tuning) => {
                let len = buf.len().max(START);
                let extra = len + pack::entry_size(element.len()) - buf.len();
                pack::grow(buf, extra);
                buf.resize(buf.len() + extra, 0);
                let pushed = counted::push(buf, len, front, element);
                debug_assert_eq!(pushed, Some(buf.len()));
            }
            _ if front => self.turn_large().push_front(element),
            _ => self.turn_large().push_back(element),
        }
    }

    /// Takes `count` elements, or as many as there are, off the front or the back; says whether there was one.
    #[inline]
    pub(super) fn pop(&mut self, front: bool, count: usize) -> bool {
        if count == 0 || self.view().is_empty() {
            return false;
        }
        match self {
            State::Packed(buf) => {
                let len = buf.len();
                let left = counted::pop(buf, len, front, count);
                buf.truncate(left);
            }
            State::Large { seq, .. } => {
                let len = seq.len();
                let left = len.saturating_sub(count);
                let places = if front { 0..len - left } else { left..len };
                self.remove(places);
            }
        }
        true
    }

    /// Puts an element before place `index`, which is at most the length.
    pub(super) fn insert(&mut self, index: usize, element: &[u8], tuning: &Tuning) {
        match self {
            State::Packed(buf) if fits(buf, 0, element.len(), tuning) => {
                let list = Counted::of(buf);
                let (len, at) = (list.len(), list.offset_of(index).unwrap_or(buf.len()));
                pack::insert(buf, at, element);
                counted::set_count(buf, len + 1);
            }
            _ => {
                self.turn_large().insert(index, element);
            }
        }
    }

    /// Puts another element at place `index`; says whether that is a change.
    pub(super) fn replace(&mut self, index: usize, element: &[u8], tuning: &Tuning) -> bool {
        let Some(old) = self.view().get(index) else {
            return false;
        };
        if old == element {
            return false;
        }
        let old = pack::entry_size(old.len());
        match self {
            State::Packed(buf) if fits(buf, old, element.len(), tuning) => {
                let at = Counted::of(buf).offset_of(index).unwrap_or(buf.len());
                pack::replace(buf, at, element);
            }
            _ => {
                self.turn_large().replace(index, element);
            }
        }
        true
    }

    /// Takes the elements at these places, which are there, out.
    fn remove(&mut self, places: Range<usize>) {
        match self {
            State::Packed(buf) => {
                let list = Counted::of(buf);
                let len = list.len();
                if let Some(at) = list.offset_of(places.start) {
                    pack::remove(buf, at, places.len());
                    counted::set_count(buf, len - places.len());
                }
            }
            State::Large { seq, waste } => {
                let removed = seq.remove_range(places);
                discard(waste, removed);
            }
        }
    }

    /// Takes all elements out but those at these places; says whether there was one.
    pub(super) fn keep(&mut self, places: Range<usize>) -> bool {
        let len = self.view().len();
        if places.len() == len {
            return false;
        }
        match self {
            State::Packed(buf) if places.is_empty() => buf.clear(),
            State::Packed(_) => {
                self.remove(places.end..len);
                self.remove(0..places.start);
            }
            State::Large { seq, waste } => {
                let [mut before, behind] = seq.keep(places);
                before.append(behind);
                discard(waste, before);
            }
        }
        true
    }

    /// Takes the elements at these places out, which ascend.
    pub(super) fn remove_all(&mut self, places: &[usize]) {
        match self {
            // Places that still are to come stay where they are.
            State::Packed(_) => {
                for &place in places.iter().rev() {
                    self.remove(place..place + 1);
                }
            }
            State::Large { seq, .. } if places.len() > seq.len() / 4 => {
                let mut left = Seq::new();
                let mut places = places.iter().copied().peekable();
                for (place, element) in seq.iter().enumerate() {
                    if places.next_if_eq(&place).is_none() {
                        left.push_back(element);
                    }
                }
                *seq = left;
            }
            State::Large { seq, .. } => {
                for &place in places.iter().rev() {
                    seq.remove_with(place, |_| ());
                }
            }
        }
    }

    /// Adds the entries of a valid pack at the end.
    pub(super) fn extend(&mut self, more: Pack<'_>, tuning: &Tuning) {
        if let State::Packed(buf) = self {
            let longest = more.iter().map(<[u8]>::len).max().unwrap_or(0);
            let (bytes, limit) = (buf.len().max(START) + more.0.len(), tuning.list);
            let count = Counted::of(buf).len() + more.count();
            if bytes <= MAX_PACKED && longest <= limit.bytes && count <= limit.entries {
                buf.resize(buf.len().max(START), 0);
                buf.extend_from_slice(more.0);
                return counted::set_count(buf, count);
            }
        }
        self.turn_large().extend_pack(more);
    }

    /// See `DataType::take_waste`.
    pub(super) fn take_waste(&mut self) -> Option<Self> {
        match self {
            State::Packed(_) => None,
            State::Large { waste, .. } => waste.take().map(|waste| State::large(*waste)),
        }
    }

    fn turn_large(&mut self) -> &mut Seq {
        loop {
            match self {
                State::Large { seq, .. } => return seq,
                State::Packed(buf) => *self = State::large(Seq::from_pack(Counted::of(buf).pack())),
            }
        }
    }
}

fn discard(waste: &mut Option<Box<Seq>>, removed: Seq) {
    if removed.bytes() >= WASTE_BYTES {
        *waste = Some(Box::new(removed));
    }
}

/// Whether a packed list stays packed with an element of `new` bytes more, and `old` bytes of one that it replaces less.
#[inline]
pub(super) fn fits(buf: &[u8], old: usize, new: usize, tuning: &Tuning) -> bool {
    let limit = tuning.list;
    new <= limit.bytes
        && buf.len().max(START) - old + pack::entry_size(new) <= MAX_PACKED
        && (old > 0 || Counted::of(buf).len() < limit.entries)
}
