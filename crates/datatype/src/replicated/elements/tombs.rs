//! Forgetting: dropping removed elements once all replicas have received their removal.

use super::packed::stamp_at;
use super::parts::Parts;
use super::state::Inner;
use super::{Cells, Element};
use crate::algebra::{Algebra, DataType, Packing, Tuning};
use crate::replicated::Forgotten;
use crate::seq::Seq;
use crate::table::{self, Shape};
use rufous_lattice::{Coded, Deadlines, Stamp};

/// The shape of a table that gets back fewer elements than were taken out.
const AS_IT_IS: Shape = Shape {
    packing: Packing {
        entries: usize::MAX,
        bytes: usize::MAX,
    },
    seed: 0,
};

/// The tombstone of an absent element: its stamp and its name.
pub(super) fn tomb<E: Element>(name: &[u8], value: &E::Value) -> Option<Vec<u8>> {
    let is_there = E::is_there(value, Stamp::ZERO);
    (!is_there).then(|| [&E::newest(value).to_bytes(), name].concat())
}

fn values<E: Element>(aside: table::View<'_, 2>) -> impl Iterator<Item = (&[u8], E::Value)> {
    // The kept bytes were encoded here.
    let value = |(name, bytes)| Some((name, E::Value::decode(bytes).ok()?));
    aside.iter().filter_map(value)
}

/// The tombstones of the elements aside, in order.
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
        self.drop_gone::<E>(self.deadline.settled(horizon));
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
            self.deadline = Deadlines::default();
            return Forgotten::Empty;
        }
        Forgotten::Kept
    }

    /// The tombstones up to the horizon, of elements aside.
    fn due<E: Element>(&self, horizon: u64) -> Vec<Vec<u8>> {
        let tombs = values::<E>(self.aside.view());
        let tombs = tombs.filter(|(_, value)| E::newest(value).time <= horizon);
        let tombs = tombs.filter_map(|(name, value)| tomb::<E>(name, &value));
        tombs.collect()
    }

    /// Whether the first of the ordered tombstones is at or before the horizon.
    fn has_tomb(&self, horizon: u64) -> bool {
        let stamp = self.tombs.get(0).and_then(<[u8]>::first_chunk);
        stamp.is_some_and(|&stamp| Stamp::from_bytes(stamp).time <= horizon)
    }

    /// Whether something has gone with a deadline that all replicas have received: it was set before the horizon, and
    /// all later writers have the cut.
    fn has_passed(&self, horizon: u64) -> bool {
        let cut = self.deadline.cut();
        cut > Stamp::ZERO && cut.time <= horizon
    }

    pub(super) fn may_make_way<E: Element>(&self, horizon: u64) -> bool {
        let has_tomb = match self.aside.packed() {
            Some(_) => !self.due::<E>(horizon).is_empty(),
            None => self.has_tomb(horizon),
        };
        has_tomb || self.deadline.settled(horizon) > Stamp::ZERO
    }

    /// Drops what was written below the cut of a passed deadline that all replicas have received: it can never be
    /// restored.
    fn drop_gone<E>(&mut self, gone: Stamp)
    where
        E: Element<Plain: DataType<State = S>>,
    {
        if gone == Stamp::ZERO {
            return;
        }
        let is_all = gone >= self.deadline.cut();
        if is_all {
            self.gone = None;
        }
        if !self.may_be_gone {
            return;
        }
        // Elements between this cut and the last one may be restored.
        self.may_be_gone = !is_all;
        self.thin_out::<E>(gone);
        let all =
            values::<E>(self.aside.view()).filter(|(_, value)| E::is_there(value, Stamp::ZERO));
        let all = all.filter_map(|(name, value)| {
            let bytes = value.encoded();
            let left = E::since(value, gone);
            // Also an addition next to others that stay: a removal by a replica that has dropped it would not name
            // it.
            let is_less = left.as_ref().is_none_or(|left| left.encoded() != bytes);
            is_less.then_some((Box::from(name), left))
        });
        let all: Vec<(Box<[u8]>, _)> = all.collect();
        for (name, left) in all {
            self.aside.remove(&name);
            // Removals since, which not all replicas may have received.
            if let Some(left) = left {
                self.put_back::<E>(&name, &left);
            }
        }
        self.may_shrink();
    }

    /// The same of elements that have gone as a whole with a later deadline.
    fn thin_out<E>(&mut self, gone: Stamp)
    where
        E: Element<Plain: DataType<State = S>>,
    {
        let Some(whole) = &mut self.gone else { return };
        let mut old: Vec<Box<[u8]>> = Vec::new();
        if let Some(dict) = whole.names() {
            for index in 0..dict.segments() {
                let segment = dict.segment_beside(index);
                let below = segment.filter(|(_, _, beside)| stamp_at(beside, 0) < gone);
                old.extend(below.map(|(name, ..)| Box::from(name)));
            }
        }
        for name in old {
            whole.hide(&name, &Tuning::default());
        }
        if E::Plain::is_empty(E::Plain::view(whole)) {
            self.gone = None;
        }
    }

    /// Stores what is left of an absent element that was aside.
    fn put_back<E: Element>(&mut self, name: &[u8], left: &E::Value) {
        self.aside.put(name, &left.encoded(), &AS_IT_IS);
        if self.aside.packed().is_none()
            && let Some(tomb) = tomb::<E>(name, left)
        {
            self.tombs.insert_sorted(&tomb);
        }
    }

    /// See [`crate::object::Object::make_way`]. Only counts can lack a removal that they follow: they have no stamp
    /// of their own.
    pub(super) fn make_way<E>(&mut self, sent: Parts<'_, E>, horizon: u64) -> u64
    where
        E: Element<Plain: DataType<State = S>>,
    {
        let (gone, mut last) = (self.deadline.settled(horizon), 0);
        // A deadline that replaces this one and its cuts.
        if sent.deadline > self.deadline && sent.deadline.gone(horizon) < gone {
            self.drop_gone::<E>(gone);
            last = gone.time;
        }
        sent.each(|name, theirs| {
            let theirs = E::newest(&theirs);
            let knows = sent.deadline != Deadlines::default() || self.deadline.at() > 0;
            if !knows && theirs < self.deadline.cut() && self.has_passed(horizon) {
                let cut = self.deadline.cut();
                self.drop_gone::<E>(cut);
                self.deadline = Deadlines::default();
                last = last.max(cut.time);
            }
            let mine = self.aside.view().get(name);
            let Some(mine) = mine.and_then(|mine| E::Value::decode(mine).ok()) else {
                return;
            };
            let newest = E::newest(&mine);
            let is_tomb = !E::is_there(&mine, Stamp::ZERO);
            if is_tomb && theirs < newest && newest.time <= horizon {
                self.take_back::<E>(name, Some(&mine));
                last = last.max(newest.time);
            }
        });
        last
    }

    /// See [`rufous_lattice::Register::meet`]. If a passed deadline is forgotten here and not at the other replica,
    /// counts on nothing here began at its cut.
    pub(super) fn meet<E>(&mut self, sent: Parts<'_, E>, horizon: u64, tuning: &Tuning)
    where
        E: Element<Plain: Algebra<State = S>>,
    {
        let gone = sent.deadline.gone(horizon);
        let mut begun: Vec<(Box<[u8]>, E::Value)> = Vec::new();
        if gone > Stamp::ZERO && self.deadline == Deadlines::default() {
            for (name, mut value) in values::<E>(self.aside.view()) {
                if E::meet(&mut value, &E::nothing(gone), horizon) {
                    begun.push((name.into(), value));
                }
            }
        }
        for (name, value) in begun {
            self.replace::<E>(&name, &value, tuning);
        }
        sent.each(|name, theirs| {
            let mine = self.aside.view().get(name);
            let mine = mine.and_then(|mine| E::Value::decode(mine).ok());
            if let Some(mut mine) = mine
                && E::meet(&mut mine, &theirs, horizon)
            {
                self.replace::<E>(name, &mine, tuning);
            }
        });
    }

    fn replace<E>(&mut self, name: &[u8], value: &E::Value, tuning: &Tuning)
    where
        E: Element<Plain: Algebra<State = S>>,
    {
        let (place, known) = self.parts::<E>().find(name);
        let old = known.value();
        self.put::<E>(name, place, old.as_ref(), value, tuning);
    }

    /// Asserts that the parts are consistent.
    #[cfg(test)]
    pub(super) fn check<E>(&self)
    where
        E: Element<Plain: DataType<State = S>>,
    {
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
