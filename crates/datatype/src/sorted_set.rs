//! Sorted sets: members, each with a score, in the order of scores and, among
//! equal scores, of bytes.
//!
//! Map, in reading order: `order` (scores as bytes, places in the order),
//! `state` (both shapes, changing them), `large` (the tree and the table of large
//! ones), `view` (reading either shape), `step` (what one operation does to one
//! member), `rules` and `combine` (the algebra), `stored` (encodings), `sample`
//! (what the checker tries).

mod combine;
mod large;
mod order;
mod rules;
mod sample;
mod score;
#[cfg(test)]
mod shadow_tests;
mod state;
mod step;
mod stored;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use order::Item;
pub use order::{Cut, Zone};
pub(crate) use score::{parts, rank_of};
pub use state::{Builder, State};
pub use view::View;

pub(crate) use score::kept_score;
pub(crate) use view::{find_packed, packed_elements};

use crate::algebra::{Algebra, Applied, Operation, Rule, Tuning};
use crate::declared::operations;
use crate::key::access::Mode;
use crate::key::footprint::Touch;
use rufous_base::rng::Rng;
use step::Step;

/// See the module's description.
#[derive(Debug)]
pub struct SortedSet;

/// When an addition or an increment is to take place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Only {
    /// New members only.
    pub new: bool,
    /// Known members only.
    pub known: bool,
    /// Known members only if their score rises.
    pub greater: bool,
    /// Known members only if their score falls.
    pub less: bool,
}

operations! {
    /// Scores are never NaN: the constructor of an operation ensures that.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub enum Op<'a> {
        Add { member: &'a [u8], score: f64, only: Only } = Add "add(x, score, conditions): outcome",
        Increment { member: &'a [u8], by: f64, only: Only } = Add "increment(x, by, conditions): score",
        Remove { member: &'a [u8] } = Remove "remove(x): bool",
        RemoveRange { zone: Zone<'a> } = Remove "remove_range(zone): int",
        Score { member: &'a [u8] } = Read "score(x): score",
        /// How many come before a member, or after it.
        Rank { member: &'a [u8], from_top: bool } = Read "rank(x, end): int",
        Length = Read "length(): int",
        Count { zone: Zone<'a> } = Read "count(zone): int",
        Range { zone: Zone<'a> } = Read "range(zone): elements",
        /// By position, both ends included; negative positions count from the end.
        Slice { start: i64, stop: i64 } = Read "slice(start, stop): elements",
        /// All members from `low` to below `high`, or to the end, by their bytes alone.
        Lex { low: &'a [u8], high: Option<&'a [u8]> } = Read "lex(low, high): elements",
    }
}

/// What became of a member that was to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Added,
    /// It was there, with another score.
    Updated,
    /// Nothing has changed.
    Kept,
}

/// A member and its score.
pub type Element = (Box<[u8]>, f64);

#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Add(Outcome),
    /// Of an increment: the new score, nothing if its conditions forbade it.
    /// Of a question for a score: nothing if there is no such member.
    Score(Option<f64>),
    /// The increment would have made a score that is no number.
    NotANumber,
    Remove(bool),
    Rank(Option<usize>),
    Count(usize),
    Elements(Vec<Element>),
}

impl Algebra for SortedSet {
    type State = State;
    type View<'a> = View<'a>;
    type Op<'a> = Op<'a>;
    type Kind = Kind;
    type Reply = Reply;

    const NAME: &'static str = "sorted set";
    const ABOUT: &'static str = "Members in the order of their scores: rankings, timelines, \
        queues by time, indexes. Changes of different members are independent of each other, and \
        reads of a part are independent of all changes elsewhere: who shows the ten best waits for \
        nobody who plays below them.";

    fn empty() -> State {
        State::default()
    }

    #[inline]
    fn view(state: &State) -> View<'_> {
        state.view()
    }

    fn execute(view: View<'_>, op: &Op<'_>) -> Reply {
        if let Some((member, step)) = Step::of(op) {
            return step.from(view.score(member)).reply;
        }
        match *op {
            Op::Score { member } => Reply::Score(view.score(member)),
            Op::Rank { member, from_top } => {
                let rank = view.rank(member);
                Reply::Rank(rank.map(|(rank, _)| match from_top {
                    true => view.len() - 1 - rank,
                    false => rank,
                }))
            }
            Op::RemoveRange { zone } | Op::Count { zone } => Reply::Count(view.span(&zone).len()),
            Op::Range { zone } => Reply::Elements(view.elements(view.span(&zone))),
            Op::Slice { start, stop } => {
                let span = crate::range::list_range(start, stop, view.len());
                Reply::Elements(view.elements(span))
            }
            Op::Lex { low, high } => {
                let mut all = Vec::new();
                view.lex(low, high, false, |member, score| {
                    all.push((member.into(), score));
                    true
                });
                Reply::Elements(all)
            }
            _ => Reply::Count(view.len()),
        }
    }

    fn commit(state: &mut State, op: &Op<'_>, tuning: &Tuning) {
        if op.is_read() {
            return;
        }
        Self::apply(state, op, tuning);
    }

    #[inline]
    fn apply(state: &mut State, op: &Op<'_>, tuning: &Tuning) -> Applied<Reply> {
        if let Some((member, step)) = Step::of(op) {
            return state.step(member, step, tuning);
        }
        match op {
            Op::RemoveRange { zone } => {
                let removed = state.remove_span(state.view().span(zone));
                Applied {
                    reply: Reply::Count(removed),
                    changed: removed > 0,
                }
            }
            _ => Applied {
                reply: Self::execute(state.view(), op),
                changed: false,
            },
        }
    }

    fn rules() -> &'static [Rule<Self>] {
        &rules::RULES
    }

    fn touch(op: &Op<'_>, touch: &mut Touch) {
        match *op {
            Op::Add { member, only, .. } => {
                let is_plain = only == Only::default() && !touch.is_wanted();
                let mode = if is_plain { Mode::Write } else { Mode::Update };
                touch.makes().element(member, mode).size(Mode::Shift);
            }
            Op::Increment { member, .. } => {
                let mode = touch.update_or(Mode::Write);
                touch.makes().element(member, mode).size(Mode::Shift);
            }
            Op::Remove { member } => {
                let mode = touch.update_or(Mode::Discard);
                touch.ends(1).element(member, mode).size(Mode::Shift);
            }
            Op::RemoveRange { .. } => {
                touch.changes_all();
            }
            Op::Score { member } => {
                touch.sees().element(member, Mode::Read);
            }
            Op::Length => {
                touch.sees().size(Mode::Read);
            }
            Op::Rank { .. }
            | Op::Count { .. }
            | Op::Range { .. }
            | Op::Slice { .. }
            | Op::Lex { .. } => {
                touch.reads_all();
            }
        }
    }

    fn combine<'a>(pending: &Self::Op<'a>, new: &Self::Op<'a>) -> Option<Self::Op<'a>> {
        combine::combine(pending, new)
    }

    fn share(pending: &Op<'_>, new: &Op<'_>, combined: &Reply) -> (Reply, Reply) {
        combine::share(pending, new, combined)
    }

    fn sample_state(rng: &mut Rng) -> State {
        sample::state(rng)
    }

    fn sample_op(rng: &mut Rng) -> Op<'static> {
        sample::op(rng)
    }

    fn canonical(view: View<'_>) -> Vec<u8> {
        let mut all = Vec::new();
        view.items(0..view.len(), |item| crate::pack::push(&mut all, item));
        all
    }
}
