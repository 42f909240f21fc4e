//! A small type for the checker's own tests: a shelf with things of four
//! kinds, of which one cannot take more than there are. It has what makes
//! checking interesting: two shapes, an answer that depends on all that is
//! held, combining, merging.

use crate::algebra::{
    Algebra, Applied, Condition, Corrupt, DataType, Held, Merge, Rule, Tuning, When,
};
use crate::declared::{operations, packed_or_large};
use rufous_base::rng::Rng;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct Shelf;

/// Packed, each thing is a byte and its number four, little endian.
#[derive(Clone, Debug)]
pub(super) enum State {
    Packed(Vec<u8>),
    Large(BTreeMap<u8, u32>),
}

#[derive(Clone, Copy)]
pub(super) enum View<'a> {
    Packed(&'a [u8]),
    Large(&'a BTreeMap<u8, u32>),
}

operations! {
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub(super) enum Op {
        Put { thing: u8, number: u32 } = Add "put(x, n): void",
        Take { thing: u8, number: u32 } = Remove "take(x, n): bool",
        Count { thing: u8 } = Read "count(x): int",
        Total = Read "total(): int",
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
    Done,
    Took(bool),
    Number(u64),
}

const THINGS: u64 = 4;

/// One packed thing and the rest.
fn split(bytes: &[u8]) -> Option<((u8, u32), &[u8])> {
    let (item, rest) = bytes.split_first_chunk::<5>()?;
    let number = u32::from_le_bytes([item[1], item[2], item[3], item[4]]);
    Some(((item[0], number), rest))
}

impl View<'_> {
    pub(super) fn all(self) -> BTreeMap<u8, u32> {
        match self {
            View::Large(map) => map.clone(),
            View::Packed(mut bytes) => std::iter::from_fn(|| {
                let (item, rest) = split(bytes)?;
                bytes = rest;
                Some(item)
            })
            .collect(),
        }
    }

    pub(super) fn count(self, thing: u8) -> u32 {
        self.all().get(&thing).copied().unwrap_or(0)
    }
}

fn pack(map: &BTreeMap<u8, u32>, out: &mut Vec<u8>) {
    for (thing, number) in map {
        out.push(*thing);
        out.extend_from_slice(&number.to_le_bytes());
    }
}

/// Puts a thing's number, in the shape that the tuning asks for.
pub(super) fn set(state: &mut State, thing: u8, number: u32, tuning: &Tuning) {
    let mut all = Shelf::view(state).all();
    match number {
        0 => all.remove(&thing),
        _ => all.insert(thing, number),
    };
    let stays_large = matches!(state, State::Large(_)) && !all.is_empty();
    *state = if stays_large || all.len() > tuning.set.entries {
        State::Large(all)
    } else {
        let mut bytes = Vec::new();
        pack(&all, &mut bytes);
        State::Packed(bytes)
    };
}

/// One rule for every pair that is not of reads.
pub(super) const fn rules<T>(holds: Condition<T>) -> [Rule<T>; 7]
where
    T: Algebra<Kind = Kind>,
{
    use Kind::*;
    let text = "enough is left, and nobody counts";
    macro_rules! of {
        ($($a:ident $b:ident),+) => {
            [$(Rule { pair: ($a, $b), when: When::If { text, holds } }),+]
        };
    }
    of![Put Put, Put Take, Take Take, Put Count, Put Total, Take Count, Take Total]
}

/// What is known of one thing from all that is held.
fn admits_thing(group: &[Held<Op>], thing: u8, count: u32) -> bool {
    let takes = group.iter().filter_map(|held| match held.op {
        Op::Take { thing: of, number } if of == thing => Some(number),
        _ => None,
    });
    let puts = group
        .iter()
        .any(|held| matches!(held.op, Op::Put { thing: of, .. } if of == thing));
    let wanted: u32 = takes.clone().sum();
    let changes = if wanted <= count {
        puts || wanted > 0
    } else if !puts && takes.clone().all(|number| number > count) {
        false
    } else {
        return false;
    };
    let seen = |held: &Held<Op>| match held.op {
        Op::Count { thing: of } => held.wanted && of == thing,
        Op::Total => held.wanted,
        _ => false,
    };
    !(changes && group.iter().any(seen))
}

impl Algebra for Shelf {
    type State = State;
    type View<'a> = View<'a>;
    type Op<'a> = Op;
    type Kind = Kind;
    type Reply = Reply;

    const NAME: &'static str = "shelf";
    const ABOUT: &'static str = "For tests.";
    const MERGE: Option<Merge<Self>> = Some(merge);

    fn empty() -> State {
        State::Packed(Vec::new())
    }

    fn view(state: &State) -> View<'_> {
        match state {
            State::Packed(bytes) => View::Packed(bytes),
            State::Large(map) => View::Large(map),
        }
    }

    fn execute(view: View<'_>, op: &Op) -> Reply {
        match *op {
            Op::Put { .. } => Reply::Done,
            Op::Take { thing, number } => Reply::Took(view.count(thing) >= number),
            Op::Count { thing } => Reply::Number(view.count(thing).into()),
            Op::Total => Reply::Number(view.all().values().map(|&n| u64::from(n)).sum()),
        }
    }

    fn commit(state: &mut State, op: &Op, tuning: &Tuning) {
        match *op {
            Op::Put { thing, number } => {
                let count = Self::view(state).count(thing).saturating_add(number);
                set(state, thing, count, tuning);
            }
            Op::Take { thing, number } => {
                if let Some(left) = Self::view(state).count(thing).checked_sub(number) {
                    set(state, thing, left, tuning);
                }
            }
            Op::Count { .. } | Op::Total => {}
        }
    }

    fn apply(state: &mut State, op: &Op, tuning: &Tuning) -> Applied<Reply> {
        let reply = Self::execute(Self::view(state), op);
        let before = Self::view(state).all();
        Self::commit(state, op, tuning);
        Applied {
            reply,
            changed: Self::view(state).all() != before,
        }
    }

    fn rules() -> &'static [Rule<Self>] {
        const { &rules::<Self>(|a, b, view| Self::admits(&[*a], b, view)) }
    }

    fn admits(held: &[Held<Op>], new: &Held<Op>, view: View<'_>) -> bool {
        let group: Vec<Held<Op>> = held.iter().chain([new]).copied().collect();
        (0..THINGS as u8).all(|thing| admits_thing(&group, thing, view.count(thing)))
    }

    fn combine<'a>(pending: &Self::Op<'a>, new: &Self::Op<'a>) -> Option<Self::Op<'a>> {
        match (*pending, *new) {
            (
                Op::Put { thing, number },
                Op::Put {
                    thing: of,
                    number: more,
                },
            ) if thing == of => {
                let number = number.checked_add(more)?;
                Some(Op::Put { thing, number })
            }
            (Op::Count { .. } | Op::Total, _) if pending == new => Some(*new),
            _ => None,
        }
    }

    fn share(_: &Op, _: &Op, combined: &Reply) -> (Reply, Reply) {
        (combined.clone(), combined.clone())
    }

    fn sample_state(rng: &mut Rng) -> State {
        let mut state = Self::empty();
        for thing in 0..THINGS as u8 {
            set(&mut state, thing, rng.below(4) as u32, &Tuning::default());
        }
        state
    }

    fn sample_op(rng: &mut Rng) -> Op {
        let (thing, number) = (rng.below(THINGS) as u8, 1 + rng.below(2) as u32);
        match rng.below(7) {
            0..=1 => Op::Put { thing, number },
            2..=4 => Op::Take { thing, number },
            5 => Op::Count { thing },
            _ => Op::Total,
        }
    }

    fn canonical(view: View<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        pack(&view.all(), &mut bytes);
        bytes
    }
}

fn merge(into: &mut State, from: View<'_>, tuning: &Tuning) -> bool {
    let before = Shelf::view(into).all();
    for (thing, number) in from.all() {
        let most = number.max(Shelf::view(into).count(thing));
        set(into, thing, most, tuning);
    }
    Shelf::view(into).all() != before
}

impl DataType for Shelf {
    const REDIS_NAME: &'static str = "shelf";

    packed_or_large!(|map: &BTreeMap<u8, u32>| map.len() * 8);

    fn packed_view(bytes: &[u8]) -> View<'_> {
        View::Packed(bytes)
    }

    fn is_empty(view: View<'_>) -> bool {
        view.all().is_empty()
    }

    fn len(view: View<'_>) -> usize {
        view.all().len()
    }

    fn encoding(_: View<'_>, _: &Tuning) -> &'static str {
        "shelf"
    }

    fn encode(op: &Op, out: &mut Vec<u8>) {
        let (tag, thing, number) = match *op {
            Op::Put { thing, number } => (0, thing, number),
            Op::Take { thing, number } => (1, thing, number),
            Op::Count { .. } | Op::Total => return,
        };
        out.extend_from_slice(&[tag, thing]);
        out.extend_from_slice(&number.to_le_bytes());
    }

    fn decode(from: &mut &[u8]) -> Result<Op, Corrupt> {
        let (tag, rest) = from.split_first().ok_or(Corrupt)?;
        let ((thing, number), rest) = split(rest).ok_or(Corrupt)?;
        let op = match tag {
            0 => Op::Put { thing, number },
            1 => Op::Take { thing, number },
            _ => return Err(Corrupt),
        };
        *from = rest;
        Ok(op)
    }

    fn chunk(view: View<'_>, at: u64, budget: usize, out: &mut Vec<u8>) -> Option<u64> {
        let number = (budget / 5).max(1);
        let all = view.all();
        let part: BTreeMap<u8, u32> = all
            .iter()
            .skip(at as usize)
            .take(number)
            .map(|(t, n)| (*t, *n))
            .collect();
        pack(&part, out);
        let next = at as usize + number;
        (next < all.len()).then_some(next as u64)
    }

    fn extend(state: &mut State, mut chunk: &[u8], tuning: &Tuning) -> Result<(), Corrupt> {
        while !chunk.is_empty() {
            let ((thing, number), rest) = split(chunk).ok_or(Corrupt)?;
            set(state, thing, number, tuning);
            chunk = rest;
        }
        Ok(())
    }
}
