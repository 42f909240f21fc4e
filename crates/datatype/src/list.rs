//! Lists, as Redis has them: elements in an order that their clients choose, taken and put mostly at the ends.
//!
//! A small list is a pack, a large one a [`Seq`](crate::seq::Seq). An operation states what to do and not its
//! result, so that a log contains `trim(0, 99)` and not a million elements.
//!
//! - [`state`]: both shapes, and views of them
//! - [`counted`]: the packed shape
//! - [`coding`]: operations as bytes
//! - [`rules`]: which operations are independent, by what is [`around`] them
//! - [`sharing`]: which operations can stand for others

mod around;
mod coding;
mod counted;
mod rules;
mod sample;
mod sharing;
mod state;
#[cfg(test)]
mod tests;

pub use state::{Iter, IterBack, State, View, places};

use crate::algebra::{Algebra, Applied, Corrupt, DataType, Held, Rule, Tuning};
use crate::declared::operations;
use crate::key::access::Mode;
use crate::key::footprint::Touch;
use crate::pack::{self, Pack};
use counted::Counted;
use rufous_base::rng::Rng;

/// See the module's description.
#[derive(Debug)]
pub struct List;

operations! {
    /// Indices are as in Redis: negative ones count from the end, -1 is the last.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Op<'a> {
        PushFront { element: &'a [u8] } = Add "pushFront(x): length",
        PushBack { element: &'a [u8] } = Add "pushBack(x): length",
        /// Takes this many elements, or all if there are fewer.
        PopFront { count: u64 } = Remove "popFront(count): elements",
        PopBack { count: u64 } = Remove "popBack(count): elements",
        Set { index: i64, element: &'a [u8] } = Add "set(index, x)",
        /// Puts an element beside the first one that is equal to the pivot.
        Insert { side: Side, pivot: &'a [u8], element: &'a [u8] } = Alone "insert(before or after pivot, x): length",
        /// Removes the first `count` elements that are equal to this one; the last ones if negative, all if 0.
        Remove { count: i64, element: &'a [u8] } = Remove "remove(count, x): int",
        /// Keeps these and no others.
        Trim { start: i64, stop: i64 } = Remove "trim(start, stop)",
        Index { index: i64 } = Read "index(i): element",
        Range { start: i64, stop: i64 } = Read "range(start, stop): elements",
        Length = Read "length(): int",
        Position(Search<'a>) = Read "position(x, rank, count, most): indices",
    }
}

/// Of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Before,
    After,
}

/// Where an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search<'a> {
    pub element: &'a [u8],
    /// With which match the answer begins: 1 is the first, -1 the last. Never 0.
    pub rank: i64,
    /// How many matches are wanted; 0: all.
    pub count: u64,
    /// How many elements are looked at; 0: all.
    pub most: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Done,
    /// How long the list is, afterwards.
    Length(usize),
    Element(Option<Box<[u8]>>),
    Elements(Vec<Box<[u8]>>),
    Removed(usize),
    Positions(Vec<u64>),
    /// There is no list to be changed.
    Missing,
    /// The list has no such index.
    OutOfRange,
    /// The list does not have the pivot.
    NoPivot,
}

impl View<'_> {
    /// Places where an element is, as the search asks for them.
    pub fn positions(self, search: &Search<'_>) -> Vec<u64> {
        let most = usize::try_from(search.most).unwrap_or(usize::MAX);
        let most = if most == 0 { usize::MAX } else { most };
        let count = usize::try_from(search.count).unwrap_or(usize::MAX);
        let count = if count == 0 { usize::MAX } else { count };
        let skip = usize::try_from(search.rank.unsigned_abs() - 1).unwrap_or(usize::MAX);
        let is = |(_, element): &(usize, &[u8])| *element == search.element;
        let place = |(place, _): (usize, &[u8])| place as u64;
        if search.rank > 0 {
            let all = self.iter().enumerate().take(most).filter(is);
            return all.map(place).skip(skip).take(count).collect();
        }
        let len = self.len();
        let back = self.iter_back().enumerate();
        let all = back.map(|(at, element)| (len - 1 - at, element)).take(most);
        all.filter(is).map(place).skip(skip).take(count).collect()
    }

    /// The places of what [`Op::Remove`] removes, ascending.
    fn removed(self, count: i64, element: &[u8]) -> Vec<usize> {
        let search = Search {
            element,
            rank: if count < 0 { -1 } else { 1 },
            count: count.unsigned_abs(),
            most: 0,
        };
        let mut places: Vec<usize> = self
            .positions(&search)
            .iter()
            .map(|&p| p as usize)
            .collect();
        if count < 0 {
            places.reverse();
        }
        places
    }

    fn place_of(self, element: &[u8]) -> Option<usize> {
        self.iter().position(|other| other == element)
    }

    fn copies(self, start: usize, count: usize) -> Reply {
        Reply::Elements(self.iter_from(start).take(count).map(Box::from).collect())
    }
}

/// Of more elements than a list can have, as many as one can.
fn clamp(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Commits, and says whether that was a change.
fn change(state: &mut State, op: &Op<'_>, tuning: &Tuning) -> bool {
    match *op {
        Op::PushFront { element } => state.push(true, element, tuning),
        Op::PushBack { element } => state.push(false, element, tuning),
        Op::PopFront { count } => return state.pop(true, clamp(count)),
        Op::PopBack { count } => return state.pop(false, clamp(count)),
        Op::Set { index, element } => {
            let place = state.view().place(index);
            return place.is_some_and(|place| state.replace(place, element, tuning));
        }
        Op::Insert {
            side,
            pivot,
            element,
        } => match state.view().place_of(pivot) {
            Some(place) => state.insert(place + usize::from(side == Side::After), element, tuning),
            None => return false,
        },
        Op::Remove { count, element } => {
            let places = state.view().removed(count, element);
            state.remove_all(&places);
            return !places.is_empty();
        }
        Op::Trim { start, stop } => {
            let places = state.view().places(start, stop);
            return state.keep(places);
        }
        Op::Index { .. } | Op::Range { .. } | Op::Length | Op::Position(_) => return false,
    }
    true
}

impl Algebra for List {
    type State = State;
    type View<'a> = View<'a>;
    type Op<'a> = Op<'a>;
    type Kind = Kind;
    type Reply = Reply;

    const NAME: &'static str = "lists";
    const ABOUT: &'static str = "Elements in the order that they were given: queues, stacks and logs. \
        Whoever asks how long a list is makes everything wait that changes it, and pushes answer that; \
        of pushes whose replies nobody wants, those at opposite ends are independent, and a queue's \
        two ends are independent of each other while there is enough between them.";

    fn empty() -> State {
        State::Packed(Vec::new())
    }

    #[inline]
    fn view(state: &State) -> View<'_> {
        state.view()
    }

    fn execute(view: View<'_>, op: &Op<'_>) -> Reply {
        match *op {
            Op::PushFront { .. } | Op::PushBack { .. } => Reply::Length(view.len() + 1),
            Op::PopFront { count } => view.copies(0, clamp(count)),
            Op::PopBack { count } => {
                let len = view.len();
                let count = clamp(count).min(len);
                let elements = view.iter_from(len - count).map(Box::from);
                let mut elements: Vec<Box<[u8]>> = elements.collect();
                elements.reverse();
                Reply::Elements(elements)
            }
            Op::Set { index, .. } => match view.place(index) {
                Some(_) => Reply::Done,
                None if view.is_empty() => Reply::Missing,
                None => Reply::OutOfRange,
            },
            Op::Insert { pivot, .. } => match view.place_of(pivot) {
                Some(_) => Reply::Length(view.len() + 1),
                None if view.is_empty() => Reply::Missing,
                None => Reply::NoPivot,
            },
            Op::Remove { count, element } => Reply::Removed(view.removed(count, element).len()),
            Op::Trim { .. } => Reply::Done,
            Op::Index { index } => Reply::Element(view.at(index).map(Box::from)),
            Op::Range { start, stop } => {
                let places = view.places(start, stop);
                view.copies(places.start, places.len())
            }
            Op::Length => Reply::Length(view.len()),
            Op::Position(search) => Reply::Positions(view.positions(&search)),
        }
    }

    #[inline]
    fn commit(state: &mut State, op: &Op<'_>, tuning: &Tuning) {
        change(state, op, tuning);
    }

    #[inline]
    fn apply(state: &mut State, op: &Op<'_>, tuning: &Tuning) -> Applied<Reply> {
        let reply = match op {
            Op::PushFront { .. } | Op::PushBack { .. } => None,
            _ => Some(Self::execute(state.view(), op)),
        };
        let changed = change(state, op, tuning);
        Applied {
            reply: reply.unwrap_or_else(|| Reply::Length(state.view().len())),
            changed,
        }
    }

    fn rules() -> &'static [Rule<Self>] {
        rules::RULES
    }

    fn admits<'a>(held: &[Held<Self::Op<'a>>], new: &Held<Self::Op<'a>>, view: View<'_>) -> bool {
        rules::admits(held, new, view)
    }

    const BEYOND_PAIRS: Option<&'static str> = Some(
        "What pops take and what is put in is counted over the whole group, so that a condition that \
         speaks of the ends of the list holds whatever the group does to it. What does nothing \
         in any order and answers the same is independent of everything: a read that nobody wants the \
         reply of, an index that the list never has, an element to look for that it never has, a trim \
         that always keeps all, anything of an empty list to which nothing is pushed.",
    );

    fn touch(op: &Op<'_>, touch: &mut Touch) {
        let (update, length) = (touch.update_or(Mode::Discard), touch.update_or(Mode::Shift));
        match *op {
            Op::PushFront { .. } => {
                touch.makes().front(Mode::Write).size(length);
            }
            Op::PushBack { .. } => {
                touch.makes().back(Mode::Write).size(length);
            }
            Op::PopFront { count } => {
                touch.takes(count).front(update).size(Mode::Shift);
            }
            Op::PopBack { count } => {
                touch.takes(count).back(update).size(Mode::Shift);
            }
            Op::Set { .. } | Op::Insert { .. } => {
                let mode = touch.update_or(Mode::Write);
                touch.sees().whole(mode);
            }
            Op::Length => {
                touch.sees().size(Mode::Read);
            }
            Op::Remove { .. } | Op::Trim { .. } => {
                touch.changes_all();
            }
            Op::Index { .. } | Op::Range { .. } | Op::Position(_) => {
                touch.reads_all();
            }
        }
    }

    fn combine<'a>(pending: &Self::Op<'a>, new: &Self::Op<'a>) -> Option<Self::Op<'a>> {
        sharing::combine(pending, new)
    }

    fn share(pending: &Op<'_>, new: &Op<'_>, combined: &Reply) -> (Reply, Reply) {
        sharing::share(pending, new, combined)
    }

    fn sample_state(rng: &mut Rng) -> State {
        sample::state(rng)
    }

    fn sample_op(rng: &mut Rng) -> Op<'static> {
        sample::op(rng)
    }

    fn canonical(view: View<'_>) -> Vec<u8> {
        let mut all = Vec::new();
        view.iter()
            .for_each(|element| pack::push(&mut all, element));
        all
    }
}

impl DataType for List {
    const REDIS_NAME: &'static str = "list";

    #[inline]
    fn packed_view(bytes: &[u8]) -> View<'_> {
        View::Packed(Counted::of(bytes))
    }

    #[inline]
    fn from_packed(bytes: Vec<u8>) -> State {
        State::Packed(bytes)
    }

    #[inline]
    fn packed(state: &State) -> Option<&[u8]> {
        match state {
            State::Packed(buf) => Some(buf),
            State::Large { .. } => None,
        }
    }

    #[inline]
    fn into_buffer(state: State) -> Option<Vec<u8>> {
        match state {
            State::Packed(buf) => Some(buf),
            State::Large { .. } => None,
        }
    }

    #[inline]
    fn is_empty(view: View<'_>) -> bool {
        view.is_empty()
    }

    fn len(view: View<'_>) -> usize {
        view.len()
    }

    fn heap_bytes(state: &State) -> usize {
        match state {
            State::Packed(_) => 0,
            State::Large { seq, .. } => seq.bytes(),
        }
    }

    fn own_bytes(state: &State) -> usize {
        match state {
            State::Packed(_) => 0,
            State::Large { seq, .. } => seq.own_bytes(),
        }
    }

    fn take_waste(state: &mut State) -> Option<State> {
        state.take_waste()
    }

    const KEEPS_ROOM: bool = true;

    #[inline]
    fn commit_packed(room: &mut [u8], len: usize, op: &Op<'_>, tuning: &Tuning) -> Option<usize> {
        let packed = &room[..len];
        match *op {
            Op::PushFront { element } if state::fits(packed, 0, element.len(), tuning) => {
                counted::push(room, len, true, element)
            }
            Op::PushBack { element } if state::fits(packed, 0, element.len(), tuning) => {
                counted::push(room, len, false, element)
            }
            Op::PopFront { count } => Some(counted::pop(room, len, true, clamp(count))),
            Op::PopBack { count } => Some(counted::pop(room, len, false, clamp(count))),
            _ => None,
        }
    }

    fn encoding(view: View<'_>, _: &Tuning) -> &'static str {
        match view {
            View::Packed(_) => "listpack",
            View::Large(_) => "quicklist",
        }
    }

    fn encode(op: &Op<'_>, out: &mut Vec<u8>) {
        coding::encode(op, out);
    }

    fn decode<'a>(from: &mut &'a [u8]) -> Result<Op<'a>, Corrupt> {
        coding::decode(from).ok_or(Corrupt)
    }

    fn chunk(view: View<'_>, at: u64, budget: usize, out: &mut Vec<u8>) -> Option<u64> {
        let start = out.len();
        let from = clamp(at);
        for (next, element) in (from..).zip(view.iter_from(from)) {
            if out.len() > start && out.len() - start >= budget {
                return Some(next as u64);
            }
            pack::push(out, element);
        }
        None
    }

    fn extend(state: &mut State, chunk: &[u8], tuning: &Tuning) -> Result<(), Corrupt> {
        state.extend(Pack::checked(chunk).ok_or(Corrupt)?, tuning);
        Ok(())
    }
}
