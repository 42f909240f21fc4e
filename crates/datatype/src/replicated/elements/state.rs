//! The state of a replicated collection, and changing it.

use super::parts::{Known, Parts, Position};
use super::{Cells, Element, Shown, Spot};
use super::{packed, tombs};
use crate::algebra::{Algebra, DataType, MAX_PACKED, Packing, Tuning};
use crate::seq::Seq;
use crate::table::{Shape, Table};
use rufous_lattice::{Coded, Deadlines, Lattice, Stamp};

pub(super) type PlainState<E> = <<E as Element>::Plain as Algebra>::State;

/// A replicated collection. `S` is a state of the plain one.
#[derive(Clone, Debug)]
pub enum State<S> {
    /// See [`super::packed`]; no bytes are the bottom.
    Packed(Vec<u8>),
    /// Boxed, so that values of other types need no more room.
    Large(Box<Inner<S>>),
}

/// A [`State`] to be read.
#[derive(Debug)]
pub enum View<'a, S> {
    Packed(&'a [u8]),
    Large(&'a Inner<S>),
}

impl<S> Clone for View<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for View<'_, S> {}

/// See the description of [`super`].
#[derive(Clone, Debug)]
pub struct Inner<S> {
    /// The shown elements. In a large state, their stamps lie beside them in its table.
    pub(super) plain: S,
    /// In a packed state, the stamps of its elements, in their order. Zero: the element is aside.
    pub(super) stamps: Vec<u8>,
    /// The states of elements that are not shown, or are more than one write.
    pub(super) aside: Table<2>,
    /// In a large state, the tombstones of absent elements aside: items of a stamp and the name of an element.
    pub(super) tombs: Seq,
    /// Shown elements that have gone with a deadline, as a whole: a large state, without elements aside.
    pub(super) gone: Option<S>,
    pub(super) deadline: Deadlines,
    /// The newest stamp of the elements; `None` if unknown, as in a decoded state.
    newest: Option<Stamp>,
    /// Whether an element aside may have gone with a deadline.
    pub(super) may_be_gone: bool,
}

/// Up to this number of elements, those aside are packed and have no tombstones.
const MOST_ASIDE: usize = 64;

impl<S: Cells> State<S> {
    #[inline]
    pub(super) fn view(&self) -> View<'_, S> {
        match self {
            State::Packed(bytes) => View::Packed(bytes),
            State::Large(inner) => View::Large(inner),
        }
    }

    /// Lets `change` change the state in either shape.
    pub(super) fn change<E, R>(&mut self, change: impl FnOnce(&mut Inner<S>) -> R) -> R
    where
        E: Element<Plain: Algebra<State = S>>,
    {
        match self {
            State::Packed(bytes) => {
                let mut inner = packed::open::<E>(std::mem::take(bytes));
                let result = change(&mut inner);
                *self = match packed::size::<E>(&inner) {
                    Some(size) => State::Packed(packed::close::<E>(inner, size)),
                    None => {
                        inner.newest = Some(inner.newest::<E>());
                        State::Large(Box::new(inner))
                    }
                };
                result
            }
            State::Large(inner) => {
                let result = change(inner);
                // Not as soon as it fits: it may grow again.
                if let Some(size) = packed::size::<E>(inner)
                    && size <= MAX_PACKED / 4 * 3
                {
                    let empty = Inner::opened(E::Plain::empty(), Vec::new(), Table::default());
                    let inner = std::mem::replace(&mut **inner, empty);
                    *self = State::Packed(packed::close::<E>(inner, size));
                }
                result
            }
        }
    }
}

impl<S: Cells> Inner<S> {
    /// A state of these parts.
    pub(super) fn opened(plain: S, stamps: Vec<u8>, aside: Table<2>) -> Self {
        Self {
            plain,
            stamps,
            may_be_gone: !aside.view().is_empty(),
            aside,
            tombs: Seq::new(),
            gone: None,
            deadline: Deadlines::default(),
            newest: None,
        }
    }

    pub(super) fn parts<E>(&self) -> Parts<'_, E>
    where
        E: Element<Plain: Algebra<State = S>>,
    {
        Parts::of_inner(self)
    }

    /// The newest stamp of the elements.
    pub(super) fn newest<E>(&self) -> Stamp
    where
        E: Element<Plain: Algebra<State = S>>,
    {
        self.newest.unwrap_or_else(|| self.parts::<E>().newest())
    }

    pub(super) fn is_bottom<E>(&self) -> bool
    where
        E: Element<Plain: DataType<State = S>>,
    {
        self.has_no_element::<E>() && self.deadline == Deadlines::default()
    }

    pub(super) fn has_no_element<E>(&self) -> bool
    where
        E: Element<Plain: DataType<State = S>>,
    {
        E::Plain::is_empty(E::Plain::view(&self.plain))
            && self.aside.view().is_empty()
            && self.gone.is_none()
    }

    pub(super) fn heap_bytes<E>(&self) -> usize
    where
        E: Element<Plain: DataType<State = S>>,
    {
        let plain = match E::Plain::packed(&self.plain) {
            Some(bytes) => bytes.len() + self.stamps.len(),
            None => E::Plain::heap_bytes(&self.plain),
        };
        let aside = self.aside.packed().map_or(0, <[u8]>::len) + self.aside.heap_bytes();
        let gone = self.gone.as_ref().map_or(0, E::Plain::heap_bytes);
        size_of::<Self>() + plain + aside + gone + self.tombs.bytes()
    }

    /// Merges an encoded value into an element; returns whether that changed
    /// anything.
    pub(super) fn merge<E>(&mut self, name: &[u8], delta: &[u8], tuning: &Tuning) -> bool
    where
        E: Element<Plain: Algebra<State = S>>,
    {
        let (place, known) = self.parts::<E>().find(name);
        if !place.aside
            && !place.gone
            && let Some((stamp, shown)) = E::write_of(delta)
            && stamp >= self.deadline.cut()
        {
            let replaces = match known {
                Known::Write(old, _) => E::replaces(old, stamp),
                _ => Some(true),
            };
            if let Some(replaces) = replaces {
                if replaces {
                    self.show::<E>(name, place.shown, stamp, shown, tuning);
                    self.newest = self.newest.map(|newest| newest.max(stamp));
                }
                return replaces;
            }
        }
        let old = known.value();
        let Ok(delta) = E::Value::decode(delta) else {
            return false;
        };
        let mut value = old.clone().unwrap_or_default();
        let changed = value.merge(&delta);
        if changed {
            self.put::<E>(name, place, old.as_ref(), &value, tuning);
        }
        changed
    }

    /// Stores the state of an element in the parts; `place` and `old` are its position and state before.
    pub(super) fn put<E>(
        &mut self,
        name: &[u8],
        place: Position,
        old: Option<&E::Value>,
        value: &E::Value,
        tuning: &Tuning,
    ) where
        E: Element<Plain: Algebra<State = S>>,
    {
        let newest = E::newest(value);
        self.newest = self.newest.map(|known| known.max(newest));
        let single = if E::is_there(value, self.deadline.cut()) {
            let single = E::single(value);
            let stamp = single.unwrap_or(Stamp::ZERO);
            E::with_shown(value, |shown| {
                self.show::<E>(name, place.shown, stamp, shown, tuning);
            });
            single
        } else {
            self.hide(name, place.shown, tuning);
            self.may_be_gone |= E::is_there(value, Stamp::ZERO);
            None
        };
        if place.gone
            && let Some(gone) = &mut self.gone
        {
            gone.hide(name, tuning);
            if E::Plain::is_empty(E::Plain::view(gone)) {
                self.gone = None;
            }
        }
        match single {
            Some(_) if !place.aside => {}
            Some(_) => self.take_back::<E>(name, old),
            None => self.set_aside::<E>(name, old.filter(|_| place.aside), value, tuning),
        }
    }

    /// Shows a write in the plain collection.
    fn show<E>(
        &mut self,
        name: &[u8],
        at: Option<Spot>,
        stamp: Stamp,
        shown: Shown<'_, E>,
        tuning: &Tuning,
    ) where
        E: Element<Plain: Algebra<State = S>>,
    {
        let stamp = stamp.to_bytes();
        if self.plain.names().is_some() {
            return self.plain.put_large(name, shown, &stamp, tuning);
        }
        let count = self.stamps.len() / Stamp::SIZE;
        let before = self.is_near_large::<E>(name, shown, count, tuning);
        let before = match E::Plain::packed(&self.plain) {
            Some(bytes) if before => bytes.to_vec(),
            _ => Vec::new(),
        };
        let to = self.plain.put(at.ok_or(count), name, shown, tuning);
        if let Some(table) = self.plain.names_mut() {
            debug_assert_eq!(S::elements(&before).count(), count, "they had room");
            *table = table.widened(Stamp::SIZE);
            let stamps = self.stamps.chunks(Stamp::SIZE);
            for ((name, _), stamp) in S::elements(&before).zip(stamps) {
                table.set_beside(name, stamp);
            }
            table.set_beside(name, &stamp);
            self.stamps = Vec::new();
            return;
        }
        match at.map(|spot| spot.index) {
            Some(from) if from == to => {
                let at = to * Stamp::SIZE;
                self.stamps[at..at + Stamp::SIZE].copy_from_slice(&stamp);
            }
            Some(from) => {
                self.drop_stamp(from);
                self.insert_stamp(to, stamp);
            }
            None => self.insert_stamp(to, stamp),
        }
    }

    /// Whether the collection may become large with one more element.
    fn is_near_large<E>(
        &self,
        name: &[u8],
        shown: Shown<'_, E>,
        count: usize,
        tuning: &Tuning,
    ) -> bool
    where
        E: Element<Plain: Algebra<State = S>>,
    {
        let Packing { entries, bytes } = S::packing(tuning);
        let size = E::Plain::packed(&self.plain).map_or(0, <[u8]>::len);
        let shown = S::shown_len(shown);
        count >= entries
            || name.len().max(shown) > bytes
            || size + name.len() + shown + MOST_HEAD > MAX_PACKED
    }

    fn insert_stamp(&mut self, index: usize, stamp: [u8; Stamp::SIZE]) {
        let at = index * Stamp::SIZE;
        if at >= self.stamps.len() {
            return self.stamps.extend_from_slice(&stamp);
        }
        self.stamps.splice(at..at, stamp);
    }

    fn drop_stamp(&mut self, index: usize) {
        let at = index * Stamp::SIZE;
        self.stamps.drain(at..at + Stamp::SIZE);
    }

    /// Removes an element from the plain collection.
    fn hide(&mut self, name: &[u8], at: Option<Spot>, tuning: &Tuning) {
        let Some(at) = at else { return };
        if self.plain.names().is_none() {
            self.drop_stamp(at.index);
        }
        self.plain.hide(name, tuning);
    }

    /// Stores an element's state aside; `old` is the state aside before.
    fn set_aside<E>(
        &mut self,
        name: &[u8],
        old: Option<&E::Value>,
        value: &E::Value,
        tuning: &Tuning,
    ) where
        E: Element<Plain: Algebra<State = S>>,
    {
        let shape = Shape {
            packing: Packing {
                entries: tuning.hash.entries.min(MOST_ASIDE),
                ..tuning.hash
            },
            seed: tuning.seed,
        };
        let was_packed = self.aside.packed().is_some();
        self.aside.put(name, &value.encoded(), &shape);
        if self.aside.packed().is_some() {
            return;
        }
        if was_packed {
            self.tombs = tombs::of::<E>(self.aside.view());
            return;
        }
        if let Some(old) = old.and_then(|old| tombs::tomb::<E>(name, old)) {
            self.tombs.remove_sorted(&old);
        }
        if let Some(new) = tombs::tomb::<E>(name, value) {
            self.tombs.insert_sorted(&new);
        }
    }

    /// Removes an element's state from those aside.
    pub(super) fn take_back<E>(&mut self, name: &[u8], old: Option<&E::Value>)
    where
        E: Element,
    {
        self.aside.remove(name);
        if self.aside.packed().is_some() {
            return;
        }
        if let Some(old) = old.and_then(|old| tombs::tomb::<E>(name, old)) {
            self.tombs.remove_sorted(&old);
        }
        self.may_shrink();
    }

    /// Makes an empty table small again.
    pub(super) fn may_shrink(&mut self) {
        if self.aside.view().is_empty() {
            self.aside = Table::default();
            self.tombs = Seq::new();
        }
    }

    /// Merges a deadline; returns whether that changed anything.
    pub(super) fn expire<E>(&mut self, deadline: Deadlines, tuning: &Tuning) -> bool
    where
        E: Element<Plain: Algebra<State = S>>,
    {
        let old = self.deadline.cut();
        let changed = self.deadline.merge(&deadline);
        let new = self.deadline.cut();
        if new == old {
            return changed;
        }
        let may_go = self.gone.is_none() && self.plain.names().is_some();
        if may_go && new > old && self.newest::<E>() < new {
            self.gone = Some(std::mem::replace(&mut self.plain, E::Plain::empty()));
            self.may_be_gone = true;
            let Self { aside, gone, .. } = self;
            if let Some(gone) = gone {
                aside.view().each(|name, _| gone.hide(name, tuning));
            }
            return changed;
        }
        let mut others: Vec<(Box<[u8]>, E::Value)> = Vec::new();
        self.parts::<E>().each(|name, value| {
            if E::is_there(&value, old) != E::is_there(&value, new) {
                others.push((name.into(), value));
            }
        });
        for (name, value) in others {
            let (place, _) = self.parts::<E>().find(&name);
            self.put::<E>(&name, place, Some(&value), &value, tuning);
        }
        changed
    }
}

/// The most bytes of an element in a pack besides its data: lengths, and a score in the place of eight bytes.
const MOST_HEAD: usize = 16;
