//! Replicated collections: elements found by name, each with a lattice that
//! says whether it is there, and the plain collection that is read.
//!
//! | | |
//! |---|---|
//! | meta | from names to encoded lattices, of elements that are there and of tombstones |
//! | view | the plain collection of what is there, equal to what meta says |
//! | tombs | stamps and names of the elements that are not there, in the order of stamps |
//!
//! Map: `state` (these three, kept together), [`super::shared_set`],
//! [`super::shared_hash`], [`super::shared_sorted_set`] (what elements are, and
//! what commands do to them), this file the algebra.

mod state;
#[cfg(test)]
pub(super) mod tests;

pub use state::{Inner, State};

use super::{Replicas, Writer};
use crate::algebra::{Algebra, Applied, Corrupt, DataType, Merge, Phase, Rule, Tuning, When};
use crate::pack::{self, Pack};
use crate::table;
use rufous_base::rng::Rng;
use rufous_lattice::{Coded, Lattice, Stamp};
use std::fmt::Debug;
use std::marker::PhantomData;

/// What the elements of a replicated collection are.
pub trait Element: Debug + 'static {
    /// The collection that is read.
    type Plain: DataType;
    type Value: Lattice + Coded + PartialEq + Debug;

    const NAME: &'static str;
    const ABOUT: &'static str;

    fn is_there(value: &Self::Value) -> bool;
    /// No stamp in it is newer.
    fn newest(value: &Self::Value) -> Stamp;
    /// A delta that removes what is there.
    fn removal(value: &Self::Value, stamp: Stamp) -> Self::Value;
    /// Has the plain collection show the element as it is, or not at all.
    fn show(
        view: &mut <Self::Plain as Algebra>::State,
        name: &[u8],
        value: &Self::Value,
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Merge,
}

/// Nothing is an empty collection.
pub type View<'a, E> = Option<&'a Inner<<<E as Element>::Plain as Algebra>::State>>;

/// Appends the operation that merges a delta into an element.
pub(super) fn tell(name: &[u8], delta: &impl Coded, ops: &mut Vec<u8>) {
    pack::push(ops, name);
    pack::push(ops, &delta.encoded());
}

impl<E: Element> Elements<E> {
    /// What meta says of an element.
    pub(super) fn value(view: View<'_, E>, name: &[u8]) -> E::Value {
        let bytes = view.and_then(|inner| inner.meta().get(name));
        // What is kept was encoded here; what is not there is the bottom.
        let value = bytes.and_then(|bytes| E::Value::decode(bytes).ok());
        value.unwrap_or_default()
    }

    /// Appends an element's removal, if it is there.
    pub(super) fn remove(view: View<'_, E>, name: &[u8], writer: &Writer, ops: &mut Vec<u8>) {
        let value = Self::value(view, name);
        if E::is_there(&value) {
            tell(name, &E::removal(&value, writer.stamp), ops);
        }
    }

    fn delete(state: &State<E>, writer: &Writer, ops: &mut Vec<u8>) {
        for (name, _) in state.meta().iter() {
            Self::remove(Some(state), name, writer, ops);
        }
    }

    fn merge(into: &mut State<E>, from: View<'_, E>, tuning: &Tuning) -> bool {
        let mut changed = false;
        for (name, delta) in from.into_iter().flat_map(|inner| inner.meta().iter()) {
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
    const KINDS: &'static [(Kind, &'static str)] = &[(Kind::Merge, "merge(x, delta)")];
    const MERGE: Option<Merge<Self>> = Some(Self::merge);

    fn empty() -> State<E> {
        Box::new(Inner::new(E::Plain::empty()))
    }

    #[inline]
    fn view(state: &State<E>) -> View<'_, E> {
        Some(state)
    }

    fn kind(_: &Op<'_>) -> Kind {
        Kind::Merge
    }

    fn execute(_: View<'_, E>, _: &Op<'_>) {}

    #[inline]
    fn commit(state: &mut State<E>, op: &Op<'_>, tuning: &Tuning) {
        Self::apply(state, op, tuning);
    }

    #[inline]
    fn apply(state: &mut State<E>, op: &Op<'_>, tuning: &Tuning) -> Applied<()> {
        let Op::Merge { name, delta } = op;
        Applied {
            reply: (),
            changed: state.merge::<E>(name, delta, tuning),
        }
    }

    fn is_read(_: Kind) -> bool {
        false
    }

    fn rules() -> &'static [Rule<Self>] {
        &[Rule {
            pair: (Kind::Merge, Kind::Merge),
            when: When::Always,
        }]
    }

    fn phase(_: &Op<'_>) -> Phase {
        Phase::Add
    }

    fn combine<'a>(pending: &Self::Op<'a>, new: &Self::Op<'a>) -> Option<Self::Op<'a>> {
        let (Op::Merge { name, delta }, Op::Merge { name: n, delta: d }) = (pending, new);
        (name == n && delta == d).then_some(*new)
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
        Op::Merge {
            name: NAMES[rng.below(NAMES.len() as u64) as usize],
            delta: &samples[rng.below(samples.len() as u64) as usize],
        }
    }

    fn canonical(view: View<'_, E>) -> Vec<u8> {
        view.map_or(Vec::new(), |inner| inner.meta().canonical())
    }
}

/// What samples are made of.
const NAMES: [&[u8]; 4] = [b"a", b"b", b"", b"a longer name"];

impl<E: Element> DataType for Elements<E> {
    const REDIS_NAME: &'static str = E::Plain::REDIS_NAME;
    const REPLICAS: Option<Replicas<Self>> = Some(Replicas {
        newest: |state| state.newest(),
        is_hidden: |view| view.is_none_or(|inner| E::Plain::is_empty(E::Plain::view(inner.view()))),
        forget: |state, horizon, budget| state.forget(horizon, budget),
        delete: Self::delete,
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
        view.is_none_or(|inner| inner.meta().is_empty())
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
        let Op::Merge { name, delta } = op;
        pack::push(out, name);
        pack::push(out, delta);
    }

    fn decode<'a>(from: &mut &'a [u8]) -> Result<Op<'a>, Corrupt> {
        let mut rest = *from;
        let (name, delta) = (table::take(&mut rest)?, table::take(&mut rest)?);
        E::Value::decode(delta).map_err(|_| Corrupt)?;
        *from = rest;
        Ok(Op::Merge { name, delta })
    }

    fn chunk(view: View<'_, E>, at: u64, budget: usize, out: &mut Vec<u8>) -> Option<u64> {
        view?.meta().chunk(at, budget, out)
    }

    fn extend(state: &mut State<E>, chunk: &[u8], tuning: &Tuning) -> Result<(), Corrupt> {
        let pack = Pack::checked(chunk).ok_or(Corrupt)?;
        if !pack.count().is_multiple_of(2) {
            return Err(Corrupt);
        }
        for (name, delta) in table::View::<2>::Packed(pack).iter() {
            E::Value::decode(delta).map_err(|_| Corrupt)?;
            state.merge::<E>(name, delta, tuning);
        }
        Ok(())
    }
}
