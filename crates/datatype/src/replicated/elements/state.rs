//! The state of a replicated collection.

use super::Element;
use crate::algebra::{Algebra, Tuning};
use crate::replicated::Forgotten;
use crate::seq::Seq;
use crate::table::{self, Shape, Table};
use rufous_lattice::{Coded, Lattice, Stamp};

/// See the description of [`super`]. `S` is a state of the plain collection.
#[derive(Clone, Debug)]
pub struct Inner<S> {
    meta: Table<2>,
    view: S,
    /// Items are a stamp and the name of an element.
    tombs: Seq,
    newest: Stamp,
}

/// Of a replicated collection: apart, so that values of other types take no
/// more room for it.
pub type State<E> = Box<Inner<<<E as Element>::Plain as Algebra>::State>>;

fn tomb(stamp: Stamp, name: &[u8]) -> Vec<u8> {
    [&stamp.to_bytes(), name].concat()
}

impl<S> Inner<S> {
    /// Without elements; `view` is an empty collection.
    pub(super) fn new(view: S) -> Self {
        Self {
            meta: Table::default(),
            view,
            tombs: Seq::new(),
            newest: Stamp::ZERO,
        }
    }

    pub(super) fn meta(&self) -> table::View<'_, 2> {
        self.meta.view()
    }

    /// What is read.
    pub(in crate::replicated) fn view(&self) -> &S {
        &self.view
    }

    pub(super) fn newest(&self) -> Stamp {
        self.newest
    }

    /// Without the plain collection.
    pub(super) fn heap_bytes(&self) -> usize {
        let packed = self.meta.packed().map_or(0, <[u8]>::len);
        size_of::<Self>() + packed + self.meta.heap_bytes() + self.tombs.bytes()
    }

    /// Merges an encoded value into an element; returns whether that changed
    /// anything.
    pub(super) fn merge<E>(&mut self, name: &[u8], delta: &[u8], tuning: &Tuning) -> bool
    where
        E: Element<Plain: Algebra<State = S>>,
    {
        let old = self.meta.view().get(name);
        let Ok(delta) = E::Value::decode(delta) else {
            return false;
        };
        // What is kept was encoded here.
        let mut value = old
            .and_then(|old| E::Value::decode(old).ok())
            .unwrap_or_default();
        let (was_there, buried) = (E::is_there(&value), E::newest(&value));
        let is_known = old.is_some();
        if !value.merge(&delta) {
            return false;
        }
        let (is_there, newest) = (E::is_there(&value), E::newest(&value));
        if is_known && !was_there {
            self.tombs.remove_sorted(&tomb(buried, name));
        }
        if !is_there {
            self.tombs.insert_sorted(&tomb(newest, name));
        }
        let shape = Shape {
            packing: tuning.hash,
            seed: tuning.seed,
        };
        self.meta.put(name, &value.encoded(), &shape);
        if is_there || was_there {
            E::show(&mut self.view, name, &value, tuning);
        }
        self.newest = self.newest.max(newest);
        true
    }

    /// See [`crate::replicated::Replicas::forget`].
    pub(super) fn forget(&mut self, horizon: u64, budget: usize) -> Forgotten {
        let is_old = |item: Option<&[u8]>| {
            let stamp = item.and_then(<[u8]>::first_chunk);
            stamp.is_some_and(|&stamp| Stamp::from_bytes(stamp).time <= horizon)
        };
        let mut left = budget;
        while is_old(self.tombs.get(0)) {
            if left == 0 {
                return Forgotten::More;
            }
            let meta = &mut self.meta;
            self.tombs
                .pop_front_with(|item| meta.remove(&item[Stamp::SIZE..]));
            left -= 1;
        }
        match self.meta.view().is_empty() {
            true => Forgotten::Empty,
            false => Forgotten::Kept,
        }
    }

    /// Whether the parts say the same.
    #[cfg(test)]
    pub(super) fn check<E>(&self)
    where
        E: Element<Plain: Algebra<State = S>>,
    {
        let mut tombs = Vec::new();
        let mut view = E::Plain::empty();
        for (name, bytes) in self.meta.view().iter() {
            let value = E::Value::decode(bytes).unwrap();
            E::show(&mut view, name, &value, &Tuning::default());
            if !E::is_there(&value) {
                tombs.push(tomb(E::newest(&value), name));
            }
            assert!(E::newest(&value) <= self.newest);
        }
        tombs.sort();
        assert!(tombs.iter().map(Vec::as_slice).eq(self.tombs.iter()));
        let canonical = |view| E::Plain::canonical(E::Plain::view(view));
        assert_eq!(canonical(&self.view), canonical(&view));
    }
}
