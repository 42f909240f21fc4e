//! Forgetting: what is not there any longer, once everybody knows.

use super::parts::Parts;
use super::state::Inner;
use super::{Cells, Element};
use crate::algebra::DataType;
use crate::replicated::Forgotten;
use crate::seq::Seq;
use crate::table;
use rufous_lattice::{Coded, Deadline, Stamp};

/// The tombstone of an element that is not there: its stamp and its name.
pub(super) fn tomb<E: Element>(name: &[u8], value: &E::Value) -> Option<Vec<u8>> {
    let is_there = E::is_there(value, Stamp::ZERO);
    (!is_there).then(|| [&E::newest(value).to_bytes(), name].concat())
}

fn values<E: Element>(aside: table::View<'_, 2>) -> impl Iterator<Item = (&[u8], E::Value)> {
    // What is kept was encoded here.
    let value = |(name, bytes)| Some((name, E::Value::decode(bytes).ok()?));
    aside.iter().filter_map(value)
}

/// The tombstones of what is aside, in order.
pub(super) fn of<E: Element>(aside: table::View<'_, 2>) -> Seq {
    let tombs = values::<E>(aside).filter_map(|(name, value)| tomb::<E>(name, &value));
    let mut tombs: Vec<_> = tombs.collect();
    tombs.sort_unstable();
    let mut seq = Seq::new();
    tombs.iter().for_each(|tomb| seq.push_back(tomb));
    seq
}

impl<S: Cells> Inner<S> {
    /// See [`crate::replicated::Replicas::forget`].
    pub(super) fn forget<E>(&mut self, horizon: u64, budget: usize) -> Forgotten
    where
        E: Element<Plain: DataType<State = S>>,
    {
        if self.has_passed(horizon) {
            self.drop_gone::<E>();
        }
        if self.aside.packed().is_some() {
            let mut due = self.due::<E>(horizon);
            due.sort_unstable();
            for tomb in due.iter().take(budget) {
                self.aside.remove(&tomb[Stamp::SIZE..]);
            }
            if due.len() > budget {
                return Forgotten::More;
            }
        }
        let mut left = budget;
        while self.has_tomb(horizon) {
            if left == 0 {
                return Forgotten::More;
            }
            let aside = &mut self.aside;
            self.tombs
                .pop_front_with(|item| aside.remove(&item[Stamp::SIZE..]));
            left -= 1;
        }
        self.may_shrink();
        if self.has_no_element::<E>() && self.deadline.until() <= horizon {
            self.deadline = Deadline::default();
            return Forgotten::Empty;
        }
        Forgotten::Kept
    }

    /// Tombstones that are that old, of what is aside.
    fn due<E: Element>(&self, horizon: u64) -> Vec<Vec<u8>> {
        let tombs = values::<E>(self.aside.view());
        let tombs = tombs.filter(|(_, value)| E::newest(value).time <= horizon);
        let tombs = tombs.filter_map(|(name, value)| tomb::<E>(name, &value));
        tombs.collect()
    }

    /// Whether the first tombstone is that old, where they are in order.
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

    pub(super) fn may_make_way<E: Element>(&self, horizon: u64) -> bool {
        let has_tomb = match self.aside.packed() {
            Some(_) => !self.due::<E>(horizon).is_empty(),
            None => self.has_tomb(horizon),
        };
        has_tomb || self.has_passed(horizon)
    }

    /// Drops what has gone with a deadline: nothing brings it back.
    fn drop_gone<E>(&mut self)
    where
        E: Element<Plain: DataType<State = S>>,
    {
        self.gone = None;
        if !std::mem::take(&mut self.may_be_gone) {
            return;
        }
        let cut = self.deadline.cut();
        let gone = |value: &E::Value| E::is_there(value, Stamp::ZERO) && !E::is_there(value, cut);
        let names: Vec<Box<[u8]>> = values::<E>(self.aside.view())
            .filter(|(_, value)| gone(value))
            .map(|(name, _)| name.into())
            .collect();
        for name in names {
            self.aside.remove(&name);
        }
        self.may_shrink();
    }

    /// See [`crate::object::Object::make_way`]. Only what is counted can say
    /// less than a removal that it comes after: it has no stamp of its own.
    pub(super) fn make_way<E>(&mut self, sent: Parts<'_, E>, horizon: u64)
    where
        E: Element<Plain: DataType<State = S>>,
    {
        let cut = self.deadline.cut();
        if self.has_passed(horizon) && sent.deadline.cut() < cut && sent.deadline > self.deadline {
            self.drop_gone::<E>();
        }
        sent.each(|name, theirs| {
            let theirs = E::newest(&theirs);
            let knows = sent.deadline != Deadline::default() || self.deadline.at() > 0;
            if !knows && theirs < self.deadline.cut() && self.has_passed(horizon) {
                self.drop_gone::<E>();
                self.deadline = Deadline::default();
            }
            let mine = self.aside.view().get(name);
            let Some(mine) = mine.and_then(|mine| E::Value::decode(mine).ok()) else {
                return;
            };
            let newest = E::newest(&mine);
            let is_tomb = !E::is_there(&mine, Stamp::ZERO);
            if is_tomb && theirs < newest && newest.time <= horizon {
                self.take_back::<E>(name, Some(&mine));
            }
        });
    }

    /// Whether the parts say the same.
    #[cfg(test)]
    pub(super) fn check<E>(&self)
    where
        E: Element<Plain: DataType<State = S>>,
    {
        use crate::algebra::{Algebra, Tuning};
        let mut view = E::Plain::empty();
        self.parts::<E>().each(|name, value| {
            if E::is_there(&value, self.deadline.cut()) {
                E::with_shown(&value, |shown| {
                    let at = S::find(E::Plain::packed(&view).unwrap_or_default(), name);
                    let at = at.map(|(spot, _)| spot);
                    view.put(at, name, shown, &Tuning::default());
                });
            }
            assert!(E::newest(&value) <= self.newest::<E>());
            let (place, known) = self.parts::<E>().find(name);
            assert_eq!(known.value(), Some(value));
            assert_eq!(place.aside, self.aside.view().contains(name));
        });
        if self.aside.packed().is_none() {
            assert!(of::<E>(self.aside.view()).iter().eq(self.tombs.iter()));
        }
        if self.plain.names().is_none() {
            let len = E::Plain::len(E::Plain::view(&self.plain));
            assert_eq!(self.stamps.len(), len * Stamp::SIZE);
        }
        let canonical = |view| E::Plain::canonical(E::Plain::view(view));
        assert_eq!(canonical(&self.plain), canonical(&view));
    }
}
