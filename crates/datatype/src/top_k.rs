//! Rankings that keep only the highest-ranked members [Claret §5]: the highest
//! bids, the best scores. A member has the greatest score it was added with,
//! and the state is a function of all adds, in whatever order:
//! adds are independent of adds, and states merge.
//!
//! Each add has its `k`, and the least `k` ever given holds: so two
//! adds with different ones are independent as well.
//!
//! State: `k`, and a sorted set of at most `k` members. Ranks count from the
//! top; of equal scores the greater member ranks higher.
//!
//! `rules` has what is independent of reads, `stored` the encodings.

mod rules;
mod stored;

use crate::algebra::{Algebra, Applied, Held, Merge, Rule, Tuning, independent};
use crate::declared::operations;
use crate::key::access::Mode;
use crate::key::footprint::Touch;
use crate::sorted_set::{self, Cut, Only, SortedSet, Zone};
use rufous_base::rng::Rng;
use std::ops::Range;

/// See the module's description.
#[derive(Debug)]
pub struct TopK;

/// The largest `k`: giving a smaller one drops all that is beyond it at once.
pub const MAX_K: u32 = 16_384;

#[derive(Clone, Debug, Default)]
pub struct State {
    /// Says nothing while there are no members.
    k: u32,
    members: sorted_set::State,
}

#[derive(Clone, Copy)]
pub struct View<'a> {
    k: u32,
    members: sorted_set::View<'a>,
}

/// A member that is added. The score is no NaN, and zero has no sign.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Add<'a> {
    pub k: u32,
    pub score: f64,
    pub member: &'a [u8],
}

operations! {
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub enum Op<'a> {
        Add(Add<'a>) = Add "add(x, score, k)",
        Max = Read "max(): element",
        /// By rank, both ends included; negative ranks count from the lowest.
        Range { start: i64, stop: i64 } = Read "range(start, stop): elements",
        Score { member: &'a [u8] } = Read "score(x): score",
        /// How many rank higher.
        Position { member: &'a [u8] } = Read "position(x): int",
        Length = Read "length(): int",
    }
}

/// A member and its score.
pub type Element = (Box<[u8]>, f64);

#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Added,
    Max(Option<Element>),
    Elements(Vec<Element>),
    Score(Option<f64>),
    Position(Option<usize>),
    Length(usize),
}

/// In the order of ranks, from the lowest.
fn is_below(one: (&[u8], f64), other: (&[u8], f64)) -> bool {
    one.1 < other.1 || one.1 == other.1 && one.0 < other.0
}

impl<'a> View<'a> {
    pub fn len(self) -> usize {
        self.members.len()
    }

    pub fn is_empty(self) -> bool {
        self.members.is_empty()
    }

    /// How many members it may have.
    fn limit(self) -> usize {
        match self.is_empty() {
            true => usize::MAX,
            false => self.k as usize,
        }
    }

    /// The element at a rank.
    pub fn at(self, rank: usize) -> Option<(&'a [u8], f64)> {
        self.members.at(self.len().checked_sub(rank + 1)?)
    }

    pub fn score(self, member: &[u8]) -> Option<f64> {
        self.members.score(member)
    }

    /// The rank of a member.
    pub fn position(self, member: &[u8]) -> Option<usize> {
        let (from_lowest, _) = self.members.rank(member)?;
        Some(self.len() - 1 - from_lowest)
    }

    /// The ranks from `start` to `stop`, as far as there are members.
    pub fn span(self, start: i64, stop: i64) -> Range<usize> {
        crate::range::list_range(start, stop, self.len())
    }

    /// Shows the elements at these ranks, the highest first.
    pub fn each(self, span: Range<usize>, see: impl FnMut(&'a [u8], f64)) {
        let len = self.len();
        let (start, end) = (span.start.min(len), span.end.min(len));
        self.members.each(len - end..len - start, true, see);
    }

    /// Whether the add changes nothing, nor would it if more was there.
    fn absorbs(self, add: &Add<'_>) -> bool {
        if add.k < self.k || self.is_empty() {
            return false;
        }
        match (self.score(add.member), self.members.at(0)) {
            (Some(score), _) => add.score <= score,
            (None, Some(lowest)) => {
                self.len() == self.limit() && is_below((add.member, add.score), lowest)
            }
            (None, None) => false,
        }
    }
}

impl State {
    fn view(&self) -> View<'_> {
        View {
            k: self.k,
            members: SortedSet::view(&self.members),
        }
    }

    /// Whether anything changed.
    fn add(&mut self, add: &Add<'_>, tuning: &Tuning) -> bool {
        if self.view().absorbs(add) {
            return false;
        }
        self.limit(add.k);
        let op = sorted_set::Op::Add {
            member: add.member,
            score: add.score,
            only: Only {
                greater: true,
                ..Only::default()
            },
        };
        SortedSet::apply(&mut self.members, &op, tuning);
        self.trim(tuning);
        true
    }

    /// Takes the smaller `k`.
    fn limit(&mut self, k: u32) {
        self.k = match self.view().is_empty() {
            true => k,
            false => self.k.min(k),
        };
    }

    /// Drops what ranks too low.
    fn trim(&mut self, tuning: &Tuning) {
        let lowest = self.view().at((self.k as usize).saturating_sub(1));
        if self.view().len() <= self.k as usize {
            return;
        }
        if let Some((member, score)) = lowest.map(|(member, score)| (member.to_vec(), score)) {
            let zone = Zone {
                low: Cut::START,
                high: Cut::before(score, &member),
            };
            let op = sorted_set::Op::RemoveRange { zone };
            SortedSet::apply(&mut self.members, &op, tuning);
        }
    }
}

fn merge(into: &mut State, from: View<'_>, tuning: &Tuning) -> bool {
    let mut changed = false;
    from.each(0..from.len(), |member, score| {
        let add = Add {
            k: from.k,
            score,
            member,
        };
        changed |= into.add(&add, tuning);
    });
    changed
}

impl Algebra for TopK {
    type State = State;
    type View<'a> = View<'a>;
    type Op<'a> = Op<'a>;
    type Kind = Kind;
    type Reply = Reply;

    const NAME: &'static str = "rankings";
    const ABOUT: &'static str = "Only the k highest-ranked members are kept, each with the \
        greatest score it was added with: the bids of an auction, the best of a game. The reply to \
        an add tells nothing of the ranking, and so adds are independent of adds, whatever is \
        added; reads are independent of adds that do not reach what they show. The least k ever \
        given holds.";

    fn empty() -> State {
        State::default()
    }

    fn view(state: &State) -> View<'_> {
        state.view()
    }

    fn execute(view: View<'_>, op: &Op<'_>) -> Reply {
        match *op {
            Op::Add(_) => Reply::Added,
            Op::Max => Reply::Max(view.at(0).map(|(member, score)| (member.into(), score))),
            Op::Range { start, stop } => {
                let mut all = Vec::new();
                view.each(view.span(start, stop), |member, score| {
                    all.push((member.into(), score));
                });
                Reply::Elements(all)
            }
            Op::Score { member } => Reply::Score(view.score(member)),
            Op::Position { member } => Reply::Position(view.position(member)),
            Op::Length => Reply::Length(view.len()),
        }
    }

    fn commit(state: &mut State, op: &Op<'_>, tuning: &Tuning) {
        if let Op::Add(add) = op {
            state.add(add, tuning);
        }
    }

    fn apply(state: &mut State, op: &Op<'_>, tuning: &Tuning) -> Applied<Reply> {
        let changed = match op {
            Op::Add(add) => state.add(add, tuning),
            _ => false,
        };
        Applied {
            reply: Self::execute(state.view(), op),
            changed,
        }
    }

    fn rules() -> &'static [Rule<Self>] {
        rules::RULES
    }

    fn admits<'a>(held: &[Held<Self::Op<'a>>], new: &Held<Self::Op<'a>>, view: View<'_>) -> bool {
        let pairs = |held: &Held<Op<'a>>| independent::<Self>(held, new, view);
        held.iter().all(pairs) && rules::leave_room(held, new, view)
    }

    const BEYOND_PAIRS: Option<&'static str> = Some(
        "a member whose score somebody wants must have room below it for all that may come to \
         rank above it.",
    );

    fn touch(op: &Op<'_>, touch: &mut Touch) {
        match *op {
            Op::Add(_) => {
                touch.makes().whole(Mode::Shift);
            }
            _ => {
                touch.reads_all();
            }
        }
    }

    fn combine<'a>(pending: &Self::Op<'a>, new: &Self::Op<'a>) -> Option<Self::Op<'a>> {
        match (*pending, *new) {
            (Op::Add(one), Op::Add(other)) if one.member == other.member => Some(Op::Add(Add {
                k: one.k.min(other.k),
                score: one.score.max(other.score),
                member: one.member,
            })),
            (Op::Add(_), _) | (_, Op::Add(_)) => None,
            (one, other) if one == other => Some(one),
            (
                Op::Range { start, stop },
                Op::Range {
                    start: from,
                    stop: to,
                },
            ) => {
                let forward = 0 <= start && start <= stop && 0 <= from && from <= to;
                let touch = from <= stop.saturating_add(1) && start <= to.saturating_add(1);
                (forward && touch).then_some(Op::Range {
                    start: start.min(from),
                    stop: stop.max(to),
                })
            }
            _ => None,
        }
    }

    fn share(pending: &Op<'_>, new: &Op<'_>, combined: &Reply) -> (Reply, Reply) {
        let (
            Reply::Elements(all),
            Op::Range { start, stop },
            Op::Range {
                start: from,
                stop: to,
            },
        ) = (combined, pending, new)
        else {
            return (combined.clone(), combined.clone());
        };
        if pending == new {
            return (combined.clone(), combined.clone());
        }
        let first = *start.min(from);
        let part = |start: i64, stop: i64| {
            let skipped = all.iter().skip((start - first) as usize);
            let count = (stop - start).saturating_add(1) as usize;
            Reply::Elements(skipped.take(count).cloned().collect())
        };
        (part(*start, *stop), part(*from, *to))
    }

    const MERGE: Option<Merge<Self>> = Some(merge);

    fn sample_state(rng: &mut Rng) -> State {
        let mut state = State::default();
        let k = 1 + rng.below(5) as u32;
        for _ in 0..rng.below(6) {
            state.add(&sample(rng, k), &Tuning::default());
        }
        state
    }

    fn sample_op(rng: &mut Rng) -> Op<'static> {
        let k = 1 + rng.below(6) as u32;
        let add = sample(rng, k);
        match rng.below(12) {
            0 => Op::Max,
            1 | 2 => Op::Range {
                start: rng.below(7) as i64 - 2,
                stop: rng.below(7) as i64 - 2,
            },
            3 | 4 => Op::Score { member: add.member },
            5 => Op::Position { member: add.member },
            6 => Op::Length,
            _ => Op::Add(add),
        }
    }

    fn canonical(view: View<'_>) -> Vec<u8> {
        if view.is_empty() {
            return Vec::new();
        }
        let members = SortedSet::canonical(view.members);
        [&view.k.to_le_bytes(), members.as_slice()].concat()
    }
}

fn sample(rng: &mut Rng, k: u32) -> Add<'static> {
    const MEMBERS: [&[u8]; 6] = [b"", b"a", b"b", b"c", b"d", b"long member"];
    Add {
        k,
        score: rng.below(5) as f64 - 1.0,
        member: MEMBERS[rng.below(6) as usize],
    }
}
