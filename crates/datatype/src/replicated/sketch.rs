//! Replicated HyperLogLogs: of each register the higher rank wins. A deletion is a write: it removes all that was
//! added to the sketch that it has seen.
//!
//! A lexicographic pair of the stamp of the last deletion and the registers added since; besides a [`Deadline`],
//! which a later deletion voids. A passed one is a deletion at its cut: an extension that arrives later has no
//! effect. What is read is the string that Redis would have.
//!
//! ```text
//! a delta or chunk:
//! stamp  bits  deadline  register  rank  …
//! 12     03    32        00 2a     03
//!
//! packed:
//! stamp  timed?  deadline  string
//! 12     01      32        …
//! ```
//!
//! Bits: 1 if there is a string, 2 if there is a deadline. No bytes are a sketch that never existed.

mod state;
#[cfg(test)]
mod tests;

pub use state::{Large, State, View};

use super::{Expiry, Forgotten, MakeWay, Past, Replicas, Writer};
use crate::algebra::{Algebra, Applied, Corrupt, DataType, Merge, Rule, Tuning, When};
pub use crate::declared::{Kind, Op};
use crate::declared::{merge_alone, merge_coded, packed_or_large};
use crate::hll::{Observation, Registers};
use crate::{pack, table};
use rufous_base::rng::Rng;
use rufous_lattice::{Deadline, Stamp};
use state::Delta;

/// See the module's description.
#[derive(Debug)]
pub struct Sketch;

/// Adds elements, and returns whether that changed the sketch. Adding none creates a missing sketch, which is empty.
pub fn add<'a>(
    view: View<'_>,
    elements: impl Iterator<Item = &'a [u8]>,
    ops: &mut Vec<u8>,
) -> bool {
    raise(view, elements.map(Observation::of), ops)
}

/// Adds all observations of another sketch; returns whether that changed the sketch.
pub fn merge(view: View<'_>, other: &Registers, ops: &mut Vec<u8>) -> bool {
    raise(view, other.observations(), ops)
}

fn raise(view: View<'_>, seen: impl Iterator<Item = Observation>, ops: &mut Vec<u8>) -> bool {
    let sketch = view.sketch();
    let mut all: Vec<_> = seen
        .filter(|seen| sketch.is_none_or(|sketch| sketch.rank(seen.index) < seen.rank))
        .collect();
    all.sort_unstable_by_key(|seen| (seen.index, std::cmp::Reverse(seen.rank)));
    all.dedup_by_key(|seen| seen.index);
    let changed = !all.is_empty() || view.text().is_none();
    if changed {
        let mut delta = Vec::new();
        let none = Deadline::default();
        Delta::put_head(&mut delta, view.stamp(), true, none);
        all.iter().for_each(|seen| Delta::put(&mut delta, *seen));
        pack::push(ops, &delta);
    }
    changed
}

pub fn delete(writer: &Writer, ops: &mut Vec<u8>) {
    let mut delta = Vec::new();
    Delta::put_head(&mut delta, writer.stamp, false, Deadline::default());
    pack::push(ops, &delta);
}

fn set_deadline(deadline: Deadline, ops: &mut Vec<u8>) {
    let mut delta = Vec::new();
    Delta::put_head(&mut delta, Stamp::ZERO, false, deadline);
    pack::push(ops, &delta);
}

impl Algebra for Sketch {
    type State = State;
    type View<'a> = View<'a>;

    const NAME: &'static str = "replicated HyperLogLogs";
    const ABOUT: &'static str = "HyperLogLogs of keyspaces whose replicas all take writes. What \
        replicas add at the same time is counted as if one had added it all. A deletion takes \
        away what it has seen, and what is added at the same time to what it deletes.";
    const MERGE: Option<Merge<Self>> = Some(|into, from, tuning| {
        let mut delta = Vec::new();
        from.chunk(0, usize::MAX, &mut delta);
        !from.is_bottom() && into.merge(&delta, tuning)
    });

    merge_alone!();

    fn empty() -> State {
        State::default()
    }

    #[inline]
    fn view(state: &State) -> View<'_> {
        state.view()
    }

    fn commit(state: &mut State, Op::Merge { delta }: &Op<'_>, tuning: &Tuning) {
        state.merge(delta, tuning);
    }

    fn apply(state: &mut State, Op::Merge { delta }: &Op<'_>, tuning: &Tuning) -> Applied<()> {
        Applied {
            reply: (),
            changed: state.merge(delta, tuning),
        }
    }

    fn combine<'a>(pending: &Self::Op<'a>, new: &Self::Op<'a>) -> Option<Self::Op<'a>> {
        let (Op::Merge { delta: a }, Op::Merge { delta: b }) = (pending, new);
        (a == b).then_some(*new)
    }

    fn sample_state(rng: &mut Rng) -> State {
        let mut state = State::default();
        for _ in 0..rng.below(4) {
            Self::commit(&mut state, &Self::sample_op(rng), &Tuning::default());
        }
        state
    }

    fn sample_op(rng: &mut Rng) -> Op<'static> {
        let delta = state::samples();
        let delta = &delta[rng.below(delta.len() as u64) as usize];
        Op::Merge { delta }
    }

    fn canonical(view: View<'_>) -> Vec<u8> {
        let mut all = Vec::new();
        if !view.is_bottom() {
            view.chunk(0, usize::MAX, &mut all);
        }
        all
    }
}

/// Appends what is left without everything that was added below the stamp, or removed with it.
fn since(Op::Merge { delta }: &Op<'_>, cut: Stamp, ops: &mut Vec<u8>) {
    // Bytes that are kept or come from a file were checked.
    if let Ok(delta) = Delta::read(delta)
        && let Some(delta) = delta.since(cut)
    {
        pack::push(ops, &delta);
    }
}

impl DataType for Sketch {
    const REDIS_NAME: &'static str = "string";
    const REPLICAS: Option<Replicas<Self>> = Some(Replicas {
        newest: |state| state.view().newest(),
        is_hidden: |view| view.text().is_none(),
        forget: |state, horizon, _| {
            let view = state.view();
            if view.text().is_some() || view.newest().time > horizon {
                return Forgotten::Kept;
            }
            *state = State::default();
            Forgotten::Empty
        },
        delete: |_, writer, ops| delete(writer, ops),
        expiry: Expiry {
            deadline: |state| state.view().deadline().at(),
            until: |state| state.view().until(),
            floor: |_| Stamp::ZERO,
            set: |state, at, writer, ops| {
                set_deadline(state.view().deadline().set(writer.stamp, at), ops);
                Ok(())
            },
            pass: |state, ops| set_deadline(state.view().deadline().passed(), ops),
        },
        make_way: Some(MakeWay {
            is_due: |state, horizon| {
                let view = state.view();
                view.text().is_none() && view.newest().time <= horizon
            },
            is_counted: |state| state.view().text().is_some(),
            run: |state, sent, known, tuning| {
                let mine = state.view();
                let newest = mine.newest().time;
                if mine.text().is_some() {
                    state.meet(sent, known.here, tuning);
                } else if sent.text().is_some()
                    && sent.stamp() < mine.stamp()
                    && newest <= known.there
                {
                    *state = State::default();
                    return newest;
                }
                0
            },
        }),
        past: Some(Past {
            gone: |view, horizon| view.gone(horizon),
            since,
            // A removal removes the whole sketch.
            ended: since,
        }),
        adds_to_nothing: |Op::Merge { delta }| {
            let delta = Delta::read(delta).ok()?;
            (delta.is_there && delta.stamp == Stamp::ZERO).then_some(b"")
        },
    });

    packed_or_large!(|large: &Large| large.heap_bytes());
    merge_coded!(Delta::read);

    fn packed_view(bytes: &[u8]) -> View<'_> {
        View::Packed(bytes)
    }

    fn is_empty(view: View<'_>) -> bool {
        view.is_bottom()
    }

    fn len(view: View<'_>) -> usize {
        usize::from(view.text().is_some())
    }

    fn encoding(_: View<'_>, _: &Tuning) -> &'static str {
        "raw"
    }

    fn chunk(view: View<'_>, at: u64, budget: usize, out: &mut Vec<u8>) -> Option<u64> {
        view.chunk(at, budget, out)
    }

    fn extend(state: &mut State, chunk: &[u8], tuning: &Tuning) -> Result<(), Corrupt> {
        let delta = Delta::read(chunk)?;
        // A state without a write or deadline is a missing key.
        let says = (delta.stamp, delta.deadline) != Default::default();
        if !says && !delta.is_there {
            return Err(Corrupt);
        }
        state.merge(chunk, tuning);
        Ok(())
    }
}
