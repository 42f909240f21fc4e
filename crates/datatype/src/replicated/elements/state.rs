//! The state of a replicated collection.

use super::Element;
use crate::algebra::{Algebra, DataType, Tuning};
use crate::replicated::Forgotten;
use crate::seq::Seq;
use crate::table::{self, Shape, Table};
use rufous_lattice::{Coded, Deadline, Lattice, Stamp};

/// See the description of [`super`]. `S` is a state of the plain collection.
#[derive(Clone, Debug)]
pub struct Inner<S> {
    meta: Table<2>,
    view: S,
    /// Items are a stamp and the name of an element.
    tombs: Seq,
    /// Of the elements.
    newest: Stamp,
    deadline: Deadline,
}

/// Names and what is known of them. What is kept was encoded here.
fn values<E: Element>(meta: table::View<'_, 2>) -> impl Iterator<Item = (&[u8], E::Value)> {
    meta.iter()
        .filter_map(|(name, bytes)| Some((name, E::Value::decode(bytes).ok()?)))
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
            deadline: Deadline::default(),
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
        self.newest.max(self.deadline.newest())
    }

    pub(super) fn until(&self) -> u64 {
        self.newest.time.max(self.deadline.until())
    }

    pub(super) fn deadline(&self) -> Deadline {
        self.deadline
    }

    pub(super) fn is_bottom(&self) -> bool {
        self.meta.view().is_empty() && self.deadline == Deadline::default()
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
        let cut = self.deadline.cut();
        let (was_there, buried) = (E::is_there(&value, Stamp::ZERO), E::newest(&value));
        let (is_known, was_shown) = (old.is_some(), E::is_there(&value, cut));
        if !value.merge(&delta) {
            return false;
        }
        let newest = E::newest(&value);
        if is_known && !was_there {
            self.tombs.remove_sorted(&tomb(buried, name));
        }
        if !E::is_there(&value, Stamp::ZERO) {
            self.tombs.insert_sorted(&tomb(newest, name));
        }
        let shape = Shape {
            packing: tuning.hash,
            seed: tuning.seed,
        };
        self.meta.put(name, &value.encoded(), &shape);
        let is_shown = E::is_there(&value, cut);
        if is_shown || was_shown {
            E::show(
                &mut self.view,
                name,
                Some(&value).filter(|_| is_shown),
                tuning,
            );
        }
        self.newest = self.newest.max(newest);
        true
    }

    /// Merges a deadline; returns whether that changed anything.
    pub(super) fn expire<E>(&mut self, deadline: Deadline, tuning: &Tuning) -> bool
    where
        E: Element<Plain: Algebra<State = S>>,
    {
        let old = self.deadline.cut();
        let changed = self.deadline.merge(&deadline);
        let new = self.deadline.cut();
        if new > old && self.newest < new {
            self.view = E::Plain::empty();
        } else if new != old {
            for (name, value) in values::<E>(self.meta.view()) {
                let is_shown = E::is_there(&value, new);
                if is_shown != E::is_there(&value, old) {
                    let value = Some(&value).filter(|_| is_shown);
                    E::show(&mut self.view, name, value, tuning);
                }
            }
        }
        changed
    }

    /// See [`crate::replicated::Replicas::forget`].
    pub(super) fn forget<E>(&mut self, horizon: u64, budget: usize) -> Forgotten
    where
        E: Element<Plain: DataType<State = S>>,
    {
        if self.has_passed(horizon) {
            self.drop_gone::<E>();
        }
        let mut left = budget;
        while self.has_tomb(horizon) {
            if left == 0 {
                return Forgotten::More;
            }
            let meta = &mut self.meta;
            self.tombs
                .pop_front_with(|item| meta.remove(&item[Stamp::SIZE..]));
            left -= 1;
        }
        if self.meta.view().is_empty() && self.deadline.until() <= horizon {
            self.deadline = Deadline::default();
            return Forgotten::Empty;
        }
        Forgotten::Kept
    }

    /// Whether the first tombstone is that old.
    fn has_tomb(&self, horizon: u64) -> bool {
        let stamp = self.tombs.get(0).and_then(<[u8]>::first_chunk);
        stamp.is_some_and(|&stamp| Stamp::from_bytes(stamp).time <= horizon)
    }

    /// Whether something has gone with a deadline, and everybody knows: it was
    /// set before that, and whoever writes from then on has the cut.
    fn has_passed(&self, horizon: u64) -> bool {
        let cut = self.deadline.cut();
        cut > Stamp::ZERO && cut.time <= horizon
    }

    pub(super) fn may_make_way(&self, horizon: u64) -> bool {
        self.has_tomb(horizon) || self.has_passed(horizon)
    }

    /// Drops what has gone with a deadline: nothing brings it back.
    fn drop_gone<E>(&mut self)
    where
        E: Element<Plain: DataType<State = S>>,
    {
        let cut = self.deadline.cut();
        let shown = E::Plain::len(E::Plain::view(&self.view));
        if self.meta.view().len() == shown + self.tombs.len() {
            return;
        }
        let gone = |value: &E::Value| E::is_there(value, Stamp::ZERO) && !E::is_there(value, cut);
        let names: Vec<Box<[u8]>> = values::<E>(self.meta.view())
            .filter(|(_, value)| gone(value))
            .map(|(name, _)| name.into())
            .collect();
        for name in names {
            self.meta.remove(&name);
        }
    }

    /// See [`crate::object::Object::make_way`]. Only what is counted can say
    /// less than a removal that it comes after: it has no stamp of its own.
    pub(super) fn make_way<E>(&mut self, sent: &Self, horizon: u64)
    where
        E: Element<Plain: DataType<State = S>>,
    {
        let cut = self.deadline.cut();
        if self.has_passed(horizon) && sent.deadline.cut() < cut && sent.deadline > self.deadline {
            self.drop_gone::<E>();
        }
        for (name, theirs) in values::<E>(sent.meta()) {
            let theirs = E::newest(&theirs);
            let knows = sent.deadline != Deadline::default() || self.deadline.at() > 0;
            if !knows && theirs < self.deadline.cut() && self.has_passed(horizon) {
                self.drop_gone::<E>();
                self.deadline = Deadline::default();
            }
            let mine = self.meta.view().get(name);
            let Some(mine) = mine.and_then(|mine| E::Value::decode(mine).ok()) else {
                continue;
            };
            let newest = E::newest(&mine);
            let is_tomb = !E::is_there(&mine, Stamp::ZERO);
            if is_tomb && theirs < newest && newest.time <= horizon {
                self.tombs.remove_sorted(&tomb(newest, name));
                self.meta.remove(name);
            }
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
            let is_shown = E::is_there(&value, self.deadline.cut());
            let shown = Some(&value).filter(|_| is_shown);
            E::show(&mut view, name, shown, &Tuning::default());
            if !E::is_there(&value, Stamp::ZERO) {
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
