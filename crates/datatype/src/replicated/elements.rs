//! Replicated collections: elements found by name, each with a lattice that
//! says whether it is there, and the plain collection that is read.
//!
//! | | |
//! |---|---|
//! | meta | from names to encoded lattices, of elements that are there and of tombstones |
//! | view | the plain collection of what is there, equal to what meta says |
//! | tombs | stamps and names of the elements that are not there, in the order of stamps |
//! | deadline | when it all goes, and what has gone with a deadline: see [`Deadline`] |
//!
//! What has gone with a deadline is in meta, but not in the view: where the
//! deadline was extended elsewhere at the same time, it comes back. It is dropped
//! when the horizon has passed the deadline, as everybody knew of it then. What is
//! written since has higher stamps; an increment of what has gone belongs to no
//! write, but to the cut.
//!
//! Map: `state` (these three, kept together), [`super::shared_set`],
//! [`super::shared_hash`], [`super::shared_sorted_set`] (what elements are, and
//! what commands do to them), this file the algebra.

#[cfg(test)]
mod deadline_tests;
mod state;
#[cfg(test)]
pub(super) mod tests;

pub use state::{Inner, State};

use super::{Expiry, MakeWay, Replicas, Writer};
use crate::algebra::{Algebra, Applied, Corrupt, DataType, Merge, Phase, Rule, Tuning, When};
use crate::pack::{self, Pack};
use crate::table;
use rufous_base::rng::Rng;
use rufous_lattice::{Coded, Deadline, Lattice, Stamp};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::LazyLock;

/// What the elements of a replicated collection are.
pub trait Element: Debug + 'static {
    /// The collection that is read.
    type Plain: DataType;
    type Value: Lattice + Coded + PartialEq + Debug;

    const NAME: &'static str;
    const ABOUT: &'static str;

    /// Whether it is there, leaving out what was written below the cut.
    fn is_there(value: &Self::Value, cut: Stamp) -> bool;
    /// What increments begin with where nothing is there since the cut.
    fn nothing(cut: Stamp) -> Self::Value;
    /// No stamp in it is newer.
    fn newest(value: &Self::Value) -> Stamp;
    /// A delta that removes what is there.
    fn removal(value: &Self::Value, stamp: Stamp) -> Self::Value;
    /// Has the plain collection show the element as it is, or with `None` not
    /// at all.
    fn show(
        view: &mut <Self::Plain as Algebra>::State,
        name: &[u8],
        value: Option<&Self::Value>,
        tuning: &Tuning,
    );
    /// Encoded deltas of few stamps, so that they meet.
    fn samples() -> &'static [Vec<u8>];
}

/// See the module's description.
#[derive(Debug)]
pub struct Elements<E>(PhantomData<E>);

#[derive(Clone, Copy, Debug)]
pub enum Op<'a> {
    /// `delta` is an encoded value of the element.
    Merge { name: &'a [u8], delta: &'a [u8] },
    /// An encoded [`Deadline`].
    Expire { deadline: &'a [u8] },
}

impl<'a> Op<'a> {
    /// As it is written: two entries. A deadline has no delta, which an element
    /// always has.
    fn parts(self) -> [&'a [u8]; 2] {
        match self {
            Op::Merge { name, delta } => [name, delta],
            Op::Expire { deadline } => [deadline, &[]],
        }
    }

    /// Of what may come from a file.
    fn of<E: Element>(first: &'a [u8], delta: &'a [u8]) -> Result<Self, Corrupt> {
        if delta.is_empty() {
            Deadline::decode(first).map_err(|_| Corrupt)?;
            return Ok(Op::Expire { deadline: first });
        }
        E::Value::decode(delta).map_err(|_| Corrupt)?;
        Ok(Op::Merge { name: first, delta })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Merge,
    Expire,
}

/// Nothing is an empty collection.
pub type View<'a, E> = Option<&'a Inner<<<E as Element>::Plain as Algebra>::State>>;

/// Appends the operation that merges a delta into an element.
pub(super) fn tell(name: &[u8], delta: &impl Coded, ops: &mut Vec<u8>) {
    pack::push(ops, name);
    pack::push(ops, &delta.encoded());
}

fn tell_deadline(deadline: Deadline, ops: &mut Vec<u8>) {
    pack::push(ops, &deadline.encoded());
    pack::push(ops, &[]);
}

impl<E: Element> Elements<E> {
    /// What meta says of an element, or what replicas begin with where nothing
    /// is there since the last deadline.
    pub(super) fn value(state: &State<E>, name: &[u8]) -> E::Value {
        let cut = state.deadline().cut();
        // What is kept was encoded here.
        let bytes = state.meta().get(name);
        let value = bytes.and_then(|bytes| E::Value::decode(bytes).ok());
        value
            .filter(|value| E::newest(value) >= cut)
            .unwrap_or_else(|| E::nothing(cut))
    }

    /// Appends an element's removal, if it is there.
    pub(super) fn remove(state: &State<E>, name: &[u8], writer: &Writer, ops: &mut Vec<u8>) {
        let value = Self::value(state, name);
        if E::is_there(&value, state.deadline().cut()) {
            tell(name, &E::removal(&value, writer.stamp), ops);
        }
    }

    fn delete(state: &State<E>, writer: &Writer, ops: &mut Vec<u8>) {
        for (name, _) in state.meta().iter() {
            Self::remove(state, name, writer, ops);
        }
        if state.deadline().at() > 0 {
            tell_deadline(state.deadline().set(writer.stamp, 0), ops);
        }
    }

    fn merge(into: &mut State<E>, from: View<'_, E>, tuning: &Tuning) -> bool {
        let Some(from) = from else { return false };
        let mut changed = into.expire::<E>(from.deadline(), tuning);
        for (name, delta) in from.meta().iter() {
            changed |= into.merge::<E>(name, delta, tuning);
        }
        changed
    }
}

impl<E: Element> Algebra for Elements<E> {
    type State = State<E>;
    type View<'a> = View<'a, E>;
    type Op<'a> = Op<'a>;
    type Kind = Kind;
    type Reply = ();

    const NAME: &'static str = E::NAME;
    const ABOUT: &'static str = E::ABOUT;
    const KINDS: &'static [(Kind, &'static str)] = &[
        (Kind::Merge, "merge(x, delta)"),
        (Kind::Expire, "expire(deadline)"),
    ];
    const MERGE: Option<Merge<Self>> = Some(Self::merge);

    fn empty() -> State<E> {
        Box::new(Inner::new(E::Plain::empty()))
    }

    #[inline]
    fn view(state: &State<E>) -> View<'_, E> {
        Some(state)
    }

    fn kind(op: &Op<'_>) -> Kind {
        match op {
            Op::Merge { .. } => Kind::Merge,
            Op::Expire { .. } => Kind::Expire,
        }
    }

    fn execute(_: View<'_, E>, _: &Op<'_>) {}

    #[inline]
    fn commit(state: &mut State<E>, op: &Op<'_>, tuning: &Tuning) {
        Self::apply(state, op, tuning);
    }

    #[inline]
    fn apply(state: &mut State<E>, op: &Op<'_>, tuning: &Tuning) -> Applied<()> {
        let changed = match *op {
            Op::Merge { name, delta } => state.merge::<E>(name, delta, tuning),
            Op::Expire { deadline } => {
                let deadline = Deadline::decode(deadline);
                deadline.is_ok_and(|deadline| state.expire::<E>(deadline, tuning))
            }
        };
        Applied { reply: (), changed }
    }

    fn is_read(_: Kind) -> bool {
        false
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

    fn phase(_: &Op<'_>) -> Phase {
        Phase::Add
    }

    fn combine<'a>(pending: &Self::Op<'a>, new: &Self::Op<'a>) -> Option<Self::Op<'a>> {
        (pending.parts() == new.parts()).then_some(*new)
    }

    fn share(_: &Op<'_>, _: &Op<'_>, (): &()) -> ((), ()) {
        ((), ())
    }

    fn sample_state(rng: &mut Rng) -> State<E> {
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

    fn canonical(view: View<'_, E>) -> Vec<u8> {
        let Some(inner) = view else {
            return Vec::new();
        };
        let mut all = Vec::new();
        if inner.deadline() != Deadline::default() {
            tell_deadline(inner.deadline(), &mut all);
        }
        all.extend(inner.meta().canonical());
        all
    }
}

/// What samples are made of.
const NAMES: [&[u8]; 4] = [b"a", b"b", b"", b"a longer name"];

/// Deadlines among the stamps of samples, some of which have passed.
static DEADLINES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for time in 1..4 {
        let stamp = Stamp {
            time,
            replica: 2,
            step: 0,
        };
        let set = Deadline::default().set(stamp, 1);
        let none = set.passed().set(stamp.next(), 0);
        all.extend([set, set.passed(), none].map(|deadline| deadline.encoded()));
        // Times of deadlines are far above the stamps of samples. Cuts between
        // these, and one that rises again.
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
        newest: |state| state.newest(),
        is_hidden: |view| view.is_none_or(|inner| E::Plain::is_empty(E::Plain::view(inner.view()))),
        forget: |state, horizon, budget| state.forget::<E>(horizon, budget),
        delete: Self::delete,
        expiry: Expiry {
            deadline: |state| state.deadline().at(),
            until: |state| state.until(),
            floor: |state| state.deadline().cut(),
            set: |state, at, writer, ops| {
                tell_deadline(state.deadline().set(writer.stamp, at), ops);
                Ok(())
            },
            pass: |state, ops| tell_deadline(state.deadline().passed(), ops),
        },
        make_way: Some(MakeWay {
            is_due: |state, horizon| state.may_make_way(horizon),
            run: |state, sent, horizon| {
                if let Some(sent) = sent {
                    state.make_way::<E>(sent, horizon);
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

    /// There is no packed form.
    fn packed_view(_: &[u8]) -> View<'_, E> {
        None
    }

    fn from_packed(_: Vec<u8>) -> State<E> {
        Self::empty()
    }

    fn packed(_: &State<E>) -> Option<&[u8]> {
        None
    }

    fn into_buffer(_: State<E>) -> Option<Vec<u8>> {
        None
    }

    fn is_empty(view: View<'_, E>) -> bool {
        view.is_none_or(|inner| inner.is_bottom())
    }

    fn len(view: View<'_, E>) -> usize {
        view.map_or(0, |inner| E::Plain::len(E::Plain::view(inner.view())))
    }

    fn heap_bytes(state: &State<E>) -> usize {
        let view = E::Plain::packed(state.view());
        let view = view.map_or_else(|| E::Plain::heap_bytes(state.view()), <[u8]>::len);
        state.heap_bytes() + view
    }

    fn encoding(view: View<'_, E>, tuning: &Tuning) -> &'static str {
        let empty = E::Plain::empty();
        let view = view.map_or(&empty, |inner| inner.view());
        E::Plain::encoding(E::Plain::view(view), tuning)
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

    fn chunk(view: View<'_, E>, at: u64, budget: usize, out: &mut Vec<u8>) -> Option<u64> {
        let inner = view?;
        // With every part, as whoever has a part of it knows what has gone.
        if inner.deadline() != Deadline::default() {
            tell_deadline(inner.deadline(), out);
        }
        inner.meta().chunk(at, budget, out)
    }

    fn extend(state: &mut State<E>, chunk: &[u8], tuning: &Tuning) -> Result<(), Corrupt> {
        let pack = Pack::checked(chunk).ok_or(Corrupt)?;
        if !pack.count().is_multiple_of(2) {
            return Err(Corrupt);
        }
        for (first, delta) in table::View::<2>::Packed(pack).iter() {
            let op = Op::of::<E>(first, delta)?;
            Self::commit(state, &op, tuning);
        }
        Ok(())
    }
}
