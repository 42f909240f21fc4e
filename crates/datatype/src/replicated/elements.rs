//! Replicated collections: elements by name, each with a lattice that determines whether it is present, and the plain
//! collection that is read.
//!
//! | | |
//! |---|---|
//! | plain | the plain collection of the present elements, which commands read |
//! | stamps | the stamp of each of these elements, if it is a single write |
//! | aside | by name, encoded: absent elements, and those of more than one write (additions, counts, earlier removals) |
//! | tombs | stamps and names of absent elements aside, in the order of stamps, if there are many |
//! | gone | elements that have gone with a deadline, while they may be restored |
//! | deadline | when the collection expires, and the cuts of passed deadlines: see [`Deadlines`] |
//!
//! So an element that was written once takes only the bytes of its stamp more than in a plain collection. If the
//! whole state is small it is packed, in a record.
//!
//! Elements that have gone with a deadline are kept, but not shown: if the deadline was concurrently extended
//! elsewhere, they are restored. They are dropped when the horizon has passed the deadline, as all replicas have
//! received it then. Later writes have higher stamps; an increment of an element that has gone belongs to the cut
//! instead of a write.
//!
//! Map: `element` (the interface of their types), `cells` (the plain collections), `parts` (reading the parts),
//! `state` (changing them together), `tombs` (forgetting), `packed` (all parts in one buffer), [`super::shared_set`],
//! [`super::shared_hash`], [`super::shared_sorted_set`] (the element types, and what commands do to them), this file
//! the algebra.

mod cells;
#[cfg(test)]
mod deadline_tests;
mod element;
mod packed;
mod parts;
mod state;
#[cfg(test)]
pub(super) mod tests;
mod tombs;

pub use cells::{Cells, Spot};
pub use element::{Element, Shown};
pub use state::{Inner, State, View};

use parts::Parts;
use state::PlainState;

use super::{Expiry, MakeWay, Past, Replicas, Writer};
use crate::algebra::{Algebra, Applied, Corrupt, DataType, Merge, Rule, Tuning, When};
use crate::declared::operations;
use crate::pack::{self, Pack};
use crate::table;
use rufous_base::rng::Rng;
use rufous_lattice::{Coded, Deadlines, Stamp};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::LazyLock;

/// See the module's description.
#[derive(Debug)]
pub struct Elements<E>(PhantomData<E>);

operations! {
    #[derive(Clone, Copy, Debug)]
    pub enum Op<'a> {
        /// `delta` is an encoded value of the element.
        Merge { name: &'a [u8], delta: &'a [u8] } = Add "merge(x, delta)",
        /// An encoded [`Deadlines`].
        Expire { deadline: &'a [u8] } = Add "expire(deadline)",
    }
}

impl<'a> Op<'a> {
    /// The encoding: two entries. A deadline has an empty delta, which an element never has.
    fn parts(self) -> [&'a [u8]; 2] {
        match self {
            Op::Merge { name, delta } => [name, delta],
            Op::Expire { deadline } => [deadline, &[]],
        }
    }

    /// Checks and decodes bytes that may come from a file.
    fn of<E: Element>(first: &'a [u8], delta: &'a [u8]) -> Result<Self, Corrupt> {
        if delta.is_empty() {
            Deadlines::decode(first).map_err(|_| Corrupt)?;
            return Ok(Op::Expire { deadline: first });
        }
        E::Value::decode(delta).map_err(|_| Corrupt)?;
        Ok(Op::Merge { name: first, delta })
    }
}

/// Appends the operation that merges a delta into an element.
pub(super) fn tell(name: &[u8], delta: &impl Coded, ops: &mut Vec<u8>) {
    pack::push(ops, name);
    // Growing the buffer step by step would cost most of the time.
    let mut bytes = Vec::with_capacity(MOST_WRITES);
    delta.encode(&mut bytes);
    pack::push(ops, &bytes);
}

/// Encoded, most writes take no more bytes than this.
const MOST_WRITES: usize = 48;

fn tell_deadline(deadline: Deadlines, ops: &mut Vec<u8>) {
    pack::push(ops, &deadline.encoded());
    pack::push(ops, &[]);
}

impl<E: Element> Elements<E> {
    /// The plain collection that is shown.
    #[inline]
    pub(super) fn plain(state: &State<PlainState<E>>) -> <E::Plain as Algebra>::View<'_> {
        plain_of::<E>(state.view())
    }

    /// The same of packed bytes.
    #[inline]
    pub(super) fn packed_plain(bytes: &[u8]) -> <E::Plain as Algebra>::View<'_> {
        plain_of::<E>(View::Packed(bytes))
    }

    /// The value of an element, or the initial one of replicas if nothing was written since the last deadline.
    pub(super) fn value(state: &State<PlainState<E>>, name: &[u8]) -> E::Value {
        let parts = Parts::<E>::of(state.view());
        let cut = parts.deadline.cut();
        let value = parts.find(name).1.value();
        value
            .filter(|value| E::newest(value) >= cut)
            .unwrap_or_else(|| E::nothing(cut))
    }

    /// Appends an element's removal, if the element is present.
    pub(super) fn remove(
        state: &State<PlainState<E>>,
        name: &[u8],
        writer: &Writer,
        ops: &mut Vec<u8>,
    ) {
        let parts = Parts::<E>::of(state.view());
        let value = parts.find(name).1.value();
        if let Some(value) = value.filter(|value| E::is_there(value, parts.deadline.cut())) {
            tell(name, &E::removal(&value, writer.stamp), ops);
        }
    }

    fn delete(state: &State<PlainState<E>>, writer: &Writer, ops: &mut Vec<u8>) {
        let parts = Parts::<E>::of(state.view());
        parts.each(|name, value| {
            if E::is_there(&value, parts.deadline.cut()) {
                tell(name, &E::removal(&value, writer.stamp), ops);
            }
        });
        if parts.deadline.at() > 0 {
            tell_deadline(parts.deadline.set(writer.stamp, 0), ops);
        }
    }

    fn merge(
        into: &mut State<PlainState<E>>,
        from: View<'_, PlainState<E>>,
        tuning: &Tuning,
    ) -> bool {
        let from = Parts::<E>::of(from);
        into.change::<E, _>(|into| {
            let mut changed = into.expire::<E>(from.deadline, tuning);
            from.each(|name, value| {
                changed |= into.merge::<E>(name, &value.encoded(), tuning);
            });
            changed
        })
    }

    fn newest(view: View<'_, PlainState<E>>) -> Stamp {
        let newest = match view {
            View::Large(inner) => inner.newest::<E>(),
            View::Packed(_) => Parts::<E>::of(view).newest(),
        };
        newest.max(deadline_of(view).newest())
    }
}

fn run<E: Element>(inner: &mut Inner<PlainState<E>>, op: &Op<'_>, tuning: &Tuning) -> bool {
    match *op {
        Op::Merge { name, delta } => inner.merge::<E>(name, delta, tuning),
        Op::Expire { deadline } => {
            let deadline = Deadlines::decode(deadline);
            deadline.is_ok_and(|deadline| inner.expire::<E>(deadline, tuning))
        }
    }
}

fn plain_of<E: Element>(view: View<'_, PlainState<E>>) -> <E::Plain as Algebra>::View<'_> {
    match view {
        View::Packed(bytes) => E::Plain::packed_view(packed::Layout::of(bytes).plain),
        View::Large(inner) => E::Plain::view(&inner.plain),
    }
}

fn deadline_of<S>(view: View<'_, S>) -> Deadlines {
    match view {
        View::Packed(bytes) => packed::Layout::of(bytes).deadline,
        View::Large(inner) => inner.deadline,
    }
}

impl<E: Element> Algebra for Elements<E> {
    type State = State<PlainState<E>>;
    type View<'a> = View<'a, PlainState<E>>;
    type Op<'a> = Op<'a>;
    type Kind = Kind;
    type Reply = ();

    const NAME: &'static str = E::NAME;
    const ABOUT: &'static str = E::ABOUT;
    const MERGE: Option<Merge<Self>> = Some(Self::merge);

    fn empty() -> Self::State {
        State::Packed(Vec::new())
    }

    #[inline]
    fn view(state: &Self::State) -> Self::View<'_> {
        state.view()
    }

    fn execute(_: Self::View<'_>, _: &Op<'_>) {}

    #[inline]
    fn commit(state: &mut Self::State, op: &Op<'_>, tuning: &Tuning) {
        Self::apply(state, op, tuning);
    }

    #[inline]
    fn apply(state: &mut Self::State, op: &Op<'_>, tuning: &Tuning) -> Applied<()> {
        let changed = state.change::<E, _>(|inner| run::<E>(inner, op, tuning));
        Applied { reply: (), changed }
    }

    fn rules() -> &'static [Rule<Self>] {
        const fn always<E: Element>(a: Kind, b: Kind) -> Rule<Elements<E>> {
            Rule {
                pair: (a, b),
                when: When::Always,
            }
        }
        const {
            &[
                always(Kind::Merge, Kind::Merge),
                always(Kind::Merge, Kind::Expire),
                always(Kind::Expire, Kind::Expire),
            ]
        }
    }

    fn combine<'a>(pending: &Self::Op<'a>, new: &Self::Op<'a>) -> Option<Self::Op<'a>> {
        (pending.parts() == new.parts()).then_some(*new)
    }

    fn sample_state(rng: &mut Rng) -> Self::State {
        let mut state = Self::empty();
        for _ in 0..rng.below(6) {
            Self::commit(&mut state, &Self::sample_op(rng), &Tuning::default());
        }
        state
    }

    fn sample_op(rng: &mut Rng) -> Op<'static> {
        let samples = E::samples();
        if rng.below(5) == 0 {
            let deadline = &DEADLINES[rng.below(DEADLINES.len() as u64) as usize];
            return Op::Expire { deadline };
        }
        Op::Merge {
            name: NAMES[rng.below(NAMES.len() as u64) as usize],
            delta: &samples[rng.below(samples.len() as u64) as usize],
        }
    }

    fn canonical(view: Self::View<'_>) -> Vec<u8> {
        let parts = Parts::<E>::of(view);
        let mut all = Vec::new();
        if parts.deadline != Deadlines::default() {
            tell_deadline(parts.deadline, &mut all);
        }
        parts.canonical(&mut all);
        all
    }
}

/// Names of the samples' elements.
const NAMES: [&[u8]; 4] = [b"a", b"b", b"", b"a longer name"];

/// Deadlines among the stamps of samples, some of which have passed.
static DEADLINES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for time in 1..4 {
        let stamp = Stamp::new(time, 2);
        let set = Deadlines::default().set(stamp, 1);
        let none = set.passed().set(stamp.next(), 0);
        all.extend([set, set.passed(), none].map(|deadline| deadline.encoded()));
        // Times of deadlines are far above the stamps of samples. These have cuts between those stamps, and one rises
        // again.
        for cut in [time, 4 - time] {
            let cut = Stamp { time: cut, ..stamp }.to_bytes();
            let passed = stamp.next().next().expired().to_bytes();
            all.push([&passed[..], &cut, &[0; 8]].concat());
        }
    }
    all
});

impl<E: Element> DataType for Elements<E> {
    const REDIS_NAME: &'static str = E::Plain::REDIS_NAME;
    const REPLICAS: Option<Replicas<Self>> = Some(Replicas {
        newest: |state| Self::newest(state.view()),
        is_hidden: |view| E::Plain::is_empty(plain_of::<E>(view)),
        forget: |state, horizon, budget| {
            state.change::<E, _>(|inner| inner.forget::<E>(horizon, budget))
        },
        delete: Self::delete,
        expiry: Expiry {
            deadline: |state| deadline_of(state.view()).at(),
            until: |state| {
                let newest = Self::newest(state.view()).time;
                newest.max(deadline_of(state.view()).until())
            },
            floor: |state| deadline_of(state.view()).cut(),
            set: |state, at, writer, ops| {
                tell_deadline(deadline_of(state.view()).set(writer.stamp, at), ops);
                Ok(())
            },
            pass: |state, ops| tell_deadline(deadline_of(state.view()).passed(), ops),
        },
        make_way: Some(MakeWay {
            is_due: |state, horizon| match state {
                State::Packed(bytes) => packed::may_make_way::<E>(bytes, horizon),
                State::Large(inner) => inner.may_make_way::<E>(horizon),
            },
            is_counted: |state| E::COUNTS && !Parts::<E>::of(state.view()).aside.is_empty(),
            run: |state, sent, known, tuning| {
                let sent = Parts::<E>::of(sent);
                state.change::<E, _>(|inner| {
                    let last = inner.make_way::<E>(sent, known.there);
                    if E::COUNTS {
                        inner.meet::<E>(sent, known.here, tuning);
                    }
                    last
                })
            },
        }),
        past: Some(Past {
            gone: |view, horizon| deadline_of(view).gone(horizon),
            since: |op, cut, ops| match *op {
                Op::Merge { name, delta } => {
                    let value = E::Value::decode(delta).ok();
                    if let Some(value) = value.and_then(|value| E::since(value, cut)) {
                        tell(name, &value, ops);
                    }
                }
                Op::Expire { deadline } => {
                    let deadline = Deadlines::decode(deadline).ok();
                    if let Some(deadline) = deadline.and_then(|deadline| deadline.since(cut)) {
                        tell_deadline(deadline, ops);
                    }
                }
            },
            ended: |op, end, ops| {
                let Op::Merge { name, delta } = *op else {
                    return Self::encode(op, ops);
                };
                let value = E::Value::decode(delta).ok();
                let left = value.and_then(|value| match E::only_counts(&value) {
                    true => Some(value),
                    false => E::since(value, end),
                });
                if let Some(value) = left {
                    tell(name, &value, ops);
                }
            },
        }),
        adds_to_nothing: |op| {
            let Op::Merge { name, delta } = *op else {
                return None;
            };
            let value = E::Value::decode(delta).ok()?;
            let adds = E::newest(&value) == Stamp::ZERO && E::is_there(&value, Stamp::ZERO);
            adds.then_some(name)
        },
    });

    fn packed_view(bytes: &[u8]) -> Self::View<'_> {
        View::Packed(bytes)
    }

    fn from_packed(bytes: Vec<u8>) -> Self::State {
        State::Packed(bytes)
    }

    fn packed(state: &Self::State) -> Option<&[u8]> {
        match state {
            State::Packed(bytes) => Some(bytes),
            State::Large(_) => None,
        }
    }

    fn into_buffer(state: Self::State) -> Option<Vec<u8>> {
        match state {
            State::Packed(bytes) => Some(bytes),
            State::Large(_) => None,
        }
    }

    fn is_empty(view: Self::View<'_>) -> bool {
        match view {
            View::Packed(bytes) => bytes.is_empty(),
            View::Large(inner) => inner.is_bottom::<E>(),
        }
    }

    fn len(view: Self::View<'_>) -> usize {
        E::Plain::len(plain_of::<E>(view))
    }

    fn heap_bytes(state: &Self::State) -> usize {
        match state {
            State::Packed(_) => 0,
            State::Large(inner) => inner.heap_bytes::<E>(),
        }
    }

    fn encoding(view: Self::View<'_>, tuning: &Tuning) -> &'static str {
        E::Plain::encoding(plain_of::<E>(view), tuning)
    }

    fn encode(op: &Op<'_>, out: &mut Vec<u8>) {
        op.parts().iter().for_each(|part| pack::push(out, part));
    }

    fn decode<'a>(from: &mut &'a [u8]) -> Result<Op<'a>, Corrupt> {
        let mut rest = *from;
        let (first, delta) = (table::take(&mut rest)?, table::take(&mut rest)?);
        *from = rest;
        Op::of::<E>(first, delta)
    }

    fn chunk(view: Self::View<'_>, at: u64, budget: usize, out: &mut Vec<u8>) -> Option<u64> {
        let parts = Parts::<E>::of(view);
        // Every part has the deadline: its receiver must know what has gone.
        if parts.deadline != Deadlines::default() {
            tell_deadline(parts.deadline, out);
        }
        parts.chunk(at, budget, out)
    }

    fn extend(state: &mut Self::State, chunk: &[u8], tuning: &Tuning) -> Result<(), Corrupt> {
        let pack = Pack::checked(chunk).ok_or(Corrupt)?;
        if !pack.count().is_multiple_of(2) {
            return Err(Corrupt);
        }
        state.change::<E, _>(|inner| {
            for (first, delta) in table::View::<2>::Packed(pack).iter() {
                run::<E>(inner, &Op::of::<E>(first, delta)?, tuning);
            }
            Ok(())
        })
    }
}
