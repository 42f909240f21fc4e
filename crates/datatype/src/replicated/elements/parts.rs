//! Reading a replicated collection, in either shape.

use super::packed::{Layout, stamp_at};
use super::state::{Inner, PlainState, View};
use super::{Cells, Element, Shown, Spot};
use crate::algebra::DataType;
use crate::dict::Dict;
use crate::pack::{self, Pack};
use crate::table;
use rufous_lattice::{Coded, Deadlines, Stamp};
use std::marker::PhantomData;

/// The shown elements, with their stamps.
#[derive(Clone, Copy, Debug)]
enum Stamped<'a> {
    Packed { plain: &'a [u8], stamps: &'a [u8] },
    Large(&'a Dict),
}

/// See the description of [`super`].
#[derive(Debug)]
pub(super) struct Parts<'a, E> {
    cells: Stamped<'a>,
    pub(super) aside: table::View<'a, 2>,
    pub(super) gone: Option<&'a Dict>,
    pub(super) deadline: Deadlines,
    of: PhantomData<E>,
}

impl<E> Clone for Parts<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Parts<'_, E> {}

/// The position of an element's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    /// If it is shown, the position of its stamp; unspecified if that is in a table.
    pub(super) shown: Option<Spot>,
    pub(super) aside: bool,
    pub(super) gone: bool,
}

/// The state of an element.
pub(super) enum Known<'a, E: Element> {
    Nothing,
    /// One write, and nothing else.
    Write(Stamp, Shown<'a, E>),
    /// An encoded value.
    Aside(&'a [u8]),
}

impl<E: Element> Known<'_, E> {
    pub(super) fn value(&self) -> Option<E::Value> {
        match self {
            Known::Nothing => None,
            Known::Write(stamp, shown) => Some(E::written(*stamp, *shown)),
            // The kept bytes were encoded here.
            Known::Aside(bytes) => E::Value::decode(bytes).ok(),
        }
    }
}

fn stamp_of(beside: &[u8]) -> Stamp {
    stamp_at(beside, 0)
}

impl<'a, E: Element> Parts<'a, E> {
    #[inline]
    pub(super) fn of(view: View<'a, PlainState<E>>) -> Self {
        match view {
            View::Packed(bytes) => {
                let layout = Layout::of(bytes);
                Self {
                    cells: Stamped::Packed {
                        plain: layout.plain,
                        stamps: layout.stamps,
                    },
                    aside: table::View::Packed(Pack(layout.aside)),
                    gone: None,
                    deadline: layout.deadline,
                    of: PhantomData,
                }
            }
            View::Large(inner) => Self::of_inner(inner),
        }
    }

    #[inline]
    pub(super) fn of_inner(inner: &'a Inner<PlainState<E>>) -> Self {
        let cells = match inner.plain.names() {
            Some(dict) => Stamped::Large(dict),
            None => Stamped::Packed {
                plain: E::Plain::packed(&inner.plain).unwrap_or_default(),
                stamps: &inner.stamps,
            },
        };
        Self {
            cells,
            aside: inner.aside.view(),
            gone: inner.gone.as_ref().and_then(Cells::names),
            deadline: inner.deadline,
            of: PhantomData,
        }
    }

    #[inline]
    pub(super) fn find(&self, name: &[u8]) -> (Position, Known<'a, E>) {
        let mut place = Position::default();
        let shown = match self.cells {
            Stamped::Packed { plain, stamps } => PlainState::<E>::find(plain, name)
                .ok()
                .map(|(spot, shown)| (spot, stamp_at(stamps, spot.index), shown)),
            Stamped::Large(dict) => dict.get_beside(name).map(|(value, beside)| {
                (
                    Spot::default(),
                    stamp_of(beside),
                    PlainState::<E>::shown(value),
                )
            }),
        };
        if let Some((spot, stamp, shown)) = shown {
            place.shown = Some(spot);
            if stamp > Stamp::ZERO {
                return (place, Known::Write(stamp, shown));
            }
        }
        if !self.aside.is_empty()
            && let Some(bytes) = self.aside.get(name)
        {
            place.aside = true;
            return (place, Known::Aside(bytes));
        }
        match self.gone.and_then(|gone| gone.get_beside(name)) {
            Some((value, beside)) => {
                place.gone = true;
                (
                    place,
                    Known::Write(stamp_of(beside), PlainState::<E>::shown(value)),
                )
            }
            None => (place, Known::Nothing),
        }
    }

    /// Visits the shown single writes first, then elements that have gone, then those aside.
    pub(super) fn each(&self, mut see: impl FnMut(&'a [u8], E::Value)) {
        self.each_write(&mut |name, stamp, shown| see(name, E::written(stamp, shown)));
        self.aside.each(|name, bytes| {
            if let Ok(value) = E::Value::decode(bytes) {
                see(name, value);
            }
        });
    }

    fn each_write(&self, see: &mut dyn FnMut(&'a [u8], Stamp, Shown<'a, E>)) {
        let mut see = |name, stamp: Stamp, shown| {
            // Zero: the element is aside.
            if stamp > Stamp::ZERO {
                see(name, stamp, shown);
            }
        };
        let mut of_dict = |dict: &'a Dict| {
            for index in 0..dict.segments() {
                for (name, value, beside) in dict.segment_beside(index) {
                    see(name, stamp_of(beside), PlainState::<E>::shown(value));
                }
            }
        };
        if let Some(gone) = self.gone {
            of_dict(gone);
        }
        match self.cells {
            Stamped::Packed { plain, stamps } => {
                for (index, (name, shown)) in PlainState::<E>::elements(plain).enumerate() {
                    see(name, stamp_at(stamps, index), shown);
                }
            }
            Stamped::Large(dict) => of_dict(dict),
        }
    }

    /// The newest stamp of the elements.
    pub(super) fn newest(&self) -> Stamp {
        let mut newest = Stamp::ZERO;
        self.each_write(&mut |_, stamp, _| newest = newest.max(stamp));
        self.aside.each(|_, bytes| {
            if let Ok(value) = E::Value::decode(bytes) {
                newest = newest.max(E::newest(&value));
            }
        });
        newest
    }

    /// Names and encoded values, in the order of names.
    pub(super) fn canonical(&self, out: &mut Vec<u8>) {
        let mut all = Vec::new();
        self.each(|name, value| all.push((name, value.encoded())));
        all.sort_unstable();
        for (name, bytes) in all {
            pack::push(out, name);
            pack::push(out, &bytes);
        }
    }

    /// See [`DataType::chunk`]. The first two bits of a position are the part that is being visited, the others the
    /// position in it.
    pub(super) fn chunk(&self, at: u64, budget: usize, out: &mut Vec<u8>) -> Option<u64> {
        let end = out.len().saturating_add(budget.max(1));
        let (mut part, mut at) = (at >> PART_BITS, at & ((1 << PART_BITS) - 1));
        while part <= LAST {
            let is_empty = match part {
                SHOWN => false,
                ASIDE => self.aside.is_empty(),
                _ => self.gone.is_none(),
            };
            if !is_empty {
                let left = end.saturating_sub(out.len());
                if left == 0 {
                    return Some(part << PART_BITS | at);
                }
                let next = match (part, self.cells, self.gone) {
                    (SHOWN, Stamped::Packed { plain, stamps }, _) => {
                        packed_chunk::<E>(plain, stamps, at, end, out)
                    }
                    (SHOWN, Stamped::Large(dict), _) => large_chunk::<E>(dict, at, end, out),
                    (ASIDE, ..) => self.aside.chunk(at, left, out),
                    (_, _, Some(gone)) => large_chunk::<E>(gone, at, end, out),
                    _ => None,
                };
                if let Some(next) = next {
                    return Some(part << PART_BITS | next);
                }
            }
            (part, at) = (part + 1, 0);
        }
        None
    }
}

const PART_BITS: u32 = 62;
const SHOWN: u64 = 0;
const ASIDE: u64 = 1;
const LAST: u64 = 2;

/// Appends an element that is one write, unless it is aside.
fn push<E: Element>(name: &[u8], stamp: Stamp, shown: Shown<'_, E>, out: &mut Vec<u8>) {
    if stamp > Stamp::ZERO {
        super::tell(name, &E::written(stamp, shown), out);
    }
}

fn packed_chunk<E: Element>(
    plain: &[u8],
    stamps: &[u8],
    at: u64,
    end: usize,
    out: &mut Vec<u8>,
) -> Option<u64> {
    for (index, (name, shown)) in PlainState::<E>::elements(plain)
        .enumerate()
        .skip(at as usize)
    {
        if out.len() >= end {
            return Some(index as u64);
        }
        push::<E>(name, stamp_at(stamps, index), shown, out);
    }
    None
}

fn large_chunk<E: Element>(dict: &Dict, at: u64, end: usize, out: &mut Vec<u8>) -> Option<u64> {
    let (first, mut skip) = ((at >> 32) as usize, at & 0xFFFF_FFFF);
    for index in first..dict.segments() {
        for (name, value, beside) in dict.segment_beside(index).skip(skip as usize) {
            if out.len() >= end {
                return Some((index as u64) << 32 | skip);
            }
            push::<E>(name, stamp_of(beside), PlainState::<E>::shown(value), out);
            skip += 1;
        }
        skip = 0;
    }
    None
}
