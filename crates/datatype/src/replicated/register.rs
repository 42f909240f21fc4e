//! Replicated strings: the write with the highest stamp wins, and increments of one write add up. See
//! [`rufous_lattice::Register`].
//!
//! A packed register is its encoding there, so that a plain write can overwrite another one in its record
//! ([`overwrite_in_place`]); if it was incremented, the text that is read precedes the encoding:
//!
//! ```text
//! form  stamp  then
//! 00    12     the value
//! 01    12     (deleted)
//! 02    12     deadline; the value
//! 04    12     length of the text; the text; what follows the stamp of a counted register
//! 05    12     stamp of the deadline; deadline; the value and its length
//! 08    12     as 04, of an incremented register whose deadline has a stamp of its own
//! ```
//!
//! No bytes are a register that was never written. A register that does not fit a record is kept by reference.
//!
//! Map: `state` (the two shapes), `write` (what commands do to strings), this file the algebra.

mod state;
#[cfg(test)]
mod tests;
mod write;

pub(super) use state::text_of;
pub use state::{
    Large, State, View, overwrite_in_place, packed_deadline, packed_newest, packed_oldest,
    packed_stamp, packed_text, plain,
};
pub(super) use write::add_float;
pub use write::{delete, expire, expire_at, increment, increment_float, set, set_keeping};

use super::{Expiry, Forgotten, MakeWay, Past, Replicas};
use crate::algebra::{Algebra, Applied, Corrupt, DataType, Merge, Rule, Tuning, When};
pub use crate::declared::{Kind, Op};
use crate::declared::{merge_alone, merge_coded, packed_or_large};
use crate::integer::is_canonical_integer;
use crate::{pack, table};
use rufous_base::rng::Rng;
use rufous_lattice::register::form;
use rufous_lattice::{Coded, Stamp};
use std::sync::LazyLock;

/// See the module's description.
#[derive(Debug)]
pub struct Register;

impl Algebra for Register {
    type State = State;
    type View<'a> = View<'a>;

    const NAME: &'static str = "registers";
    const ABOUT: &'static str = "Strings of keyspaces whose replicas all take writes. Of two \
        writes at the same time the one with the higher stamp stays, at every replica; a deletion \
        is a write. Increments belong to the write that they have seen and add up, whichever \
        replicas they are made at; a write replaces the increments that it has seen and those that \
        are made at the same time.";
    const MERGE: Option<Merge<Self>> =
        Some(|into, from, _| from.delta().is_some_and(|delta| into.merge(&delta)));

    merge_alone!();

    fn empty() -> State {
        State::default()
    }

    #[inline]
    fn view(state: &State) -> View<'_> {
        state.view()
    }

    #[inline]
    fn commit(state: &mut State, Op::Merge { delta }: &Op<'_>, _: &Tuning) {
        state.merge(delta);
    }

    #[inline]
    fn apply(state: &mut State, Op::Merge { delta }: &Op<'_>, _: &Tuning) -> Applied<()> {
        Applied {
            reply: (),
            changed: state.merge(delta),
        }
    }

    /// A write that is later than everything in the other is the result of both.
    fn combine<'a>(pending: &Self::Op<'a>, new: &Self::Op<'a>) -> Option<Self::Op<'a>> {
        let (Op::Merge { delta: a }, Op::Merge { delta: b }) = (pending, new);
        let replaces = |one: &[u8], other: &[u8]| {
            // In another form a write may have left the deadline as it was.
            let is_dated = one.first() == Some(&form::DATED);
            !is_dated && packed_stamp(one) > packed_newest(other)
        };
        match (replaces(b, a), replaces(a, b)) {
            (true, _) => Some(*new),
            (_, true) => Some(*pending),
            _ => (a == b).then_some(*new),
        }
    }

    fn sample_state(rng: &mut Rng) -> State {
        let mut state = State::default();
        for _ in 0..rng.below(3) {
            state.merge(sample(rng));
        }
        state
    }

    fn sample_op(rng: &mut Rng) -> Op<'static> {
        Op::Merge { delta: sample(rng) }
    }

    fn canonical(view: View<'_>) -> Vec<u8> {
        view.delta().unwrap_or_default().into_owned()
    }
}

/// Registers of few stamps and all forms.
pub(super) fn samples() -> Vec<rufous_lattice::Register> {
    use rufous_lattice::Register as Lattice;
    let stamp = Stamp::new;
    let mut all = Vec::new();
    for (time, replica) in [(0, 0), (1, 1), (1, 2), (2, 1)] {
        let stamp = stamp(time, replica);
        let mut counted = Lattice::deleted(stamp);
        all.push(counted.clone());
        if stamp > Stamp::ZERO {
            let value = [&b"7"[..], b"-2.5", b"a text"][usize::from(replica) + time as usize - 2];
            counted = Lattice::written(stamp, value.into(), 0);
            all.push(counted.clone());
            all.push(Lattice::written(stamp, value.into(), 99));
            all.push(Lattice::deleted(stamp.expired()));
        }
        for (replica, by) in [(1, 5), (2, -300)] {
            // invariant: so little fits
            counted.counter.add(replica, by).expect("fits");
            all.push(counted.clone());
        }
        for total in [0.25, -1e300] {
            counted.floats.set(1, total);
            all.push(counted.clone());
        }
    }
    all
}

/// Encoded registers, and one that does not fit a record.
fn sample(rng: &mut Rng) -> &'static [u8] {
    static SAMPLES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
        let mut all = samples();
        let stamp = Stamp::new(3, 1);
        let large = vec![b'x'; 5000];
        all.push(rufous_lattice::Register::written(stamp, large, 0));
        for of in all.clone() {
            let mut dated = of.clone();
            dated.set_deadline(Stamp::new(2, 2), 77);
            all.push(dated.rewritten(Stamp::new(4, 1), b"8".to_vec()));
            all.push(dated.clone());
            dated.expire();
            all.push(dated);
        }
        all.iter().map(Coded::encoded).collect()
    });
    &SAMPLES[rng.below(SAMPLES.len() as u64) as usize]
}

/// See [`Past::since`]. An operation is the whole string.
fn since(op @ Op::Merge { delta }: &Op<'_>, cut: Stamp, ops: &mut Vec<u8>) {
    let view = View::Packed(delta);
    let newest = packed_newest(delta);
    if newest > cut || newest == cut && view.register().is_there() {
        Register::encode(op, ops);
    }
}

impl DataType for Register {
    const REDIS_NAME: &'static str = "string";
    const REPLICAS: Option<Replicas<Self>> = Some(Replicas {
        newest: |state| state.view().newest(),
        is_hidden: |view| view.text().is_none(),
        forget: |state, horizon, _| {
            if !state.is_over(horizon) {
                return Forgotten::Kept;
            }
            *state = State::default();
            Forgotten::Empty
        },
        delete: |_, writer, ops| delete(writer, ops),
        expiry: Expiry {
            deadline: |state| state.view().deadline(),
            until: |state| state.view().until(),
            floor: |_| Stamp::ZERO,
            set: |state, at, writer, ops| {
                expire_at(state.view(), at, writer, ops);
                Ok(())
            },
            pass: |state, ops| expire(state.view(), ops),
        },
        make_way: Some(MakeWay {
            is_due: State::is_over,
            is_counted: State::is_counted,
            run: |state, sent, known, _| {
                let until = state.view().until();
                if state.is_over(known.there) && sent.stamp() < state.view().stamp() {
                    // The sender has forgotten all of it. What it sends may have a later deadline, which would
                    // restore the value.
                    *state = State::default();
                    return until;
                }
                state.meet(sent, known.here);
                0
            },
        }),
        past: Some(Past {
            gone: |view, horizon| view.gone(horizon),
            since,
            // A removal removes the whole string.
            ended: since,
        }),
        adds_to_nothing: |Op::Merge { delta }| {
            let adds = matches!(delta.first(), Some(&(form::COUNTED | form::DATED)));
            let adds = adds && packed_stamp(delta) == Stamp::ZERO;
            (adds && View::Packed(delta).register().is_counted()).then_some(b"")
        },
    });

    packed_or_large!(|large: &Large| large.heap_bytes());
    merge_coded!(state::check);

    fn packed_view(bytes: &[u8]) -> View<'_> {
        View::Packed(bytes)
    }

    fn is_empty(view: View<'_>) -> bool {
        matches!(view, View::Packed([]))
    }

    fn len(view: View<'_>) -> usize {
        usize::from(view.text().is_some())
    }

    fn encoding(view: View<'_>, _: &Tuning) -> &'static str {
        match view.text() {
            Some(text) if is_canonical_integer(text) => "int",
            Some(text) if text.len() > 44 => "raw",
            _ => "embstr",
        }
    }

    fn chunk(view: View<'_>, _: u64, _: usize, out: &mut Vec<u8>) -> Option<u64> {
        out.extend_from_slice(&view.delta().unwrap_or_default());
        None
    }

    fn extend(state: &mut State, chunk: &[u8], _: &Tuning) -> Result<(), Corrupt> {
        state::check(chunk)?;
        state.merge(chunk);
        Ok(())
    }
}
