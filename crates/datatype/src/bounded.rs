//! Bounded counters: an integer that never leaves its bounds. An add that
//! would make it leave them is refused and changes nothing.
//!
//! Whether an add is accepted is known without its turn, while there is enough
//! for all that is held: with ten in stock, any three buyers of one each may
//! come in any order. That is an escrow; it looks at everything held, since
//! pairs are not enough.
//!
//! State: value, least and greatest, little endian.

#[cfg(test)]
mod tests;

use crate::algebra::{Algebra, Applied, Corrupt, DataType, Held, Phase, Rule, Tuning, When};
use crate::declared::{operations, packed_alone, rules};
use crate::key::access::Mode;
use crate::key::footprint::Touch;
use rufous_base::rng::Rng;

/// See the module's description.
#[derive(Debug)]
pub struct Bounded;

/// A value and its bounds: `min <= value <= max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    pub value: i64,
    pub min: i64,
    pub max: i64,
}

impl Counter {
    pub fn is_sound(&self) -> bool {
        (self.min..=self.max).contains(&self.value)
    }

    /// The counter after an add, unless that is refused.
    fn plus(self, by: i64) -> Option<Counter> {
        let value = self.value.checked_add(by)?;
        let moved = Counter { value, ..self };
        moved.is_sound().then_some(moved)
    }

    fn read(bytes: &[u8]) -> Option<Counter> {
        let ([value, min, max], []) = bytes.as_chunks::<8>() else {
            return None;
        };
        let counter = Counter {
            value: i64::from_le_bytes(*value),
            min: i64::from_le_bytes(*min),
            max: i64::from_le_bytes(*max),
        };
        counter.is_sound().then_some(counter)
    }

    fn write(&self, out: &mut Vec<u8>) {
        for number in [self.value, self.min, self.max] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
}

operations! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Op {
        /// A counter that is sound, in place of whatever is there.
        Set(Counter) = Alone "set(x, bounds)",
        /// Answers whether it is accepted.
        Add(i64) = Add "add(x): bool",
        /// The same, but answers the new value.
        Incr(i64) = Alone "incr(x): int",
        Get = Read "get(): int",
        Bounds = Read "bounds(): int, int",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    Set,
    /// There is no counter.
    Missing,
    Accepted,
    /// Nothing has changed.
    Refused,
    Value(i64),
    Bounds(i64, i64),
}

/// How far an operation moves the counter if it is accepted; reads not at all.
fn amount(op: &Op) -> i64 {
    match op {
        Op::Add(by) | Op::Incr(by) => *by,
        _ => 0,
    }
}

/// What an accepted operation answers, given the value after it.
fn accepted(op: &Op, value: i64) -> Reply {
    match op {
        Op::Add(_) => Reply::Accepted,
        _ => Reply::Value(value),
    }
}

/// Whether these operations, none of which is a set, give the same result in
/// any order, all of them or some.
///
/// Some are refused in every order: those refused even if all operations that
/// help them are executed first. They do nothing. The others must all fit together,
/// even if the operations that help are not executed; then they are accepted in every
/// order. Else the order is visible, unless no reply is wanted and all are the same.
fn fits(group: &[&Held<Op>], counter: Option<Counter>) -> bool {
    let Some(counter) = counter else {
        // All of them say so.
        return true;
    };
    let distance = |bound: i64| i128::from(bound) - i128::from(counter.value);
    let (down, up) = (distance(counter.min), distance(counter.max));
    let mut moving: Vec<i128> = group
        .iter()
        .map(|held| i128::from(amount(&held.op)))
        .filter(|&by| by != 0)
        .collect();
    let total = |moving: &[i128], sign: i128| -> i128 {
        let all = moving.iter().filter(|by| *by * sign > 0);
        all.sum()
    };
    // An operation that is always refused helps no other, so more may always be refused.
    loop {
        let (before, lowest, highest) = (moving.len(), total(&moving, -1), total(&moving, 1));
        moving.retain(|&by| match by > 0 {
            true => lowest + by <= up,
            false => highest + by >= down,
        });
        if moving.len() == before {
            break;
        }
    }
    let shows_value = |held: &&&Held<Op>| {
        let hopeless = amount(&held.op) != 0 && !moving.contains(&i128::from(amount(&held.op)));
        held.wanted && matches!(held.op, Op::Get | Op::Incr(_)) && !hopeless
    };
    let showing: Vec<_> = group.iter().filter(shows_value).collect();
    let others_move = match showing.as_slice() {
        [] => false,
        // Its own move is no surprise.
        [one] => moving.len() > usize::from(amount(&one.op) != 0),
        [_, _, ..] => !moving.is_empty(),
    };
    if others_move {
        return false;
    }
    let all_fit = total(&moving, 1) <= up && total(&moving, -1) >= down;
    let alike = moving.windows(2).all(|two| two[0] == two[1]);
    let told = |held: &&&Held<Op>| held.wanted && moving.contains(&i128::from(amount(&held.op)));
    all_fit || alike && group.iter().filter(told).count() == 0
}

/// The rule of operations that move or show the value.
const ESCROW: When<Bounded> = When::If {
    text: "both fit into S whether or not the other is executed, and no wanted value changes; \
           or one is refused in any case; or they are the same and no reply is wanted",
    holds: |one, other, view| fits(&[one, other], Counter::read(view)),
};

/// The rule of an add and a read of the value.
const MOVES: When<Bounded> = When::If {
    text: "x = 0, or x is refused in any case, or the value is not wanted",
    holds: |one, other, view| fits(&[one, other], Counter::read(view)),
};

rules! {
    static RULES of Bounded:
        Set, Set: "x = y", |one, other, _| one.op == other.op;
        Set, Add: When::Never;
        Set, Incr: When::Never;
        Set, Get: "x is the value in S, or the value is not wanted", |set, get, view| match (set.op, Counter::read(view)) {
            (Op::Set(x), Some(counter)) => x.value == counter.value || !get.wanted,
            _ => !get.wanted,
        };
        Set, Bounds: "the bounds are those in S, or they are not wanted", |set, read, view| match (set.op, Counter::read(view)) {
            (Op::Set(x), Some(counter)) => {
                (x.min, x.max) == (counter.min, counter.max) || !read.wanted
            }
            _ => !read.wanted,
        };
        Add, Add: ESCROW;
        Incr, Add: ESCROW;
        Incr, Incr: ESCROW;
        Incr, Get: MOVES;
        Add, Get: MOVES;
        Incr, Bounds: When::Always;
        Add, Bounds: When::Always;
}

impl Algebra for Bounded {
    type State = Vec<u8>;
    type View<'a> = &'a [u8];
    type Op<'a> = Op;
    type Kind = Kind;
    type Reply = Reply;

    const NAME: &'static str = "bounded counters";
    const ABOUT: &'static str = "An integer that never leaves its bounds: an add that would make \
        it leave them is refused and changes nothing. Adds that only tell whether they were \
        accepted are independent while there is enough for all of them, which is what stock, \
        seats and quotas are counted for; the new value would show the order.";

    fn empty() -> Vec<u8> {
        Vec::new()
    }

    fn view(state: &Vec<u8>) -> &[u8] {
        state
    }

    fn execute(view: &[u8], op: &Op) -> Reply {
        if let Op::Set(_) = op {
            return Reply::Set;
        }
        match (Counter::read(view), op) {
            (None, _) => Reply::Missing,
            (Some(counter), Op::Bounds) => Reply::Bounds(counter.min, counter.max),
            (Some(counter), _) => match counter.plus(amount(op)) {
                Some(moved) => accepted(op, moved.value),
                None => Reply::Refused,
            },
        }
    }

    fn commit(state: &mut Vec<u8>, op: &Op, _: &Tuning) {
        let after = match op {
            Op::Set(counter) => Some(*counter),
            _ => Counter::read(state).and_then(|counter| counter.plus(amount(op))),
        };
        if let Some(counter) = after {
            state.clear();
            counter.write(state);
        }
    }

    fn apply(state: &mut Vec<u8>, op: &Op, tuning: &Tuning) -> Applied<Reply> {
        let before = Counter::read(state);
        let reply = Self::execute(state, op);
        Self::commit(state, op, tuning);
        Applied {
            reply,
            changed: Counter::read(state) != before,
        }
    }

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }

    fn admits<'a>(held: &[Held<Self::Op<'a>>], new: &Held<Self::Op<'a>>, view: &[u8]) -> bool {
        let pairs = |held: &Held<Op>| crate::algebra::independent::<Self>(held, new, view);
        let all: Vec<&Held<Op>> = held.iter().chain([new]).collect();
        held.iter().all(pairs) && fits(&all, Counter::read(view))
    }

    const BEYOND_PAIRS: Option<&'static str> = Some(
        "all that is held must fit together: everything taken must be there even if nothing that \
         is given comes, and there must be room for everything given even if nothing is taken. \
         What would be refused even if all that helps it came first is refused in every order, \
         and stands in nobody's way.",
    );

    fn phase(op: &Op) -> Phase {
        match op {
            Op::Get | Op::Bounds => Phase::Read,
            Op::Add(by) if *by >= 0 => Phase::Add,
            Op::Add(_) => Phase::Remove,
            Op::Set(_) | Op::Incr(_) => Phase::Alone,
        }
    }

    fn touch(op: &Op, touch: &mut Touch) {
        match *op {
            Op::Set(_) => {
                touch.makes().whole(Mode::Write);
            }
            // It replies whether there is room, not where it came to.
            Op::Add(by) => {
                touch.sees().whole(Mode::Count(by));
            }
            Op::Incr(_) => {
                let mode = touch.update_or(Mode::Write);
                touch.sees().whole(mode);
            }
            Op::Get | Op::Bounds => {
                touch.reads_all();
            }
        }
    }

    fn combine<'a>(pending: &Self::Op<'a>, new: &Self::Op<'a>) -> Option<Self::Op<'a>> {
        match (pending, new) {
            (Op::Set(_), Op::Set(_)) | (Op::Get, Op::Get) | (Op::Bounds, Op::Bounds) => {
                return Some(*new);
            }
            (Op::Set(_) | Op::Bounds, _) | (_, Op::Set(_) | Op::Bounds) => return None,
            _ => {}
        }
        let (one, other) = (amount(pending), amount(new));
        // Both ways, the first might be refused where the sum is not.
        if one.signum() * other.signum() < 0 {
            return None;
        }
        let sum = one.checked_add(other)?;
        match (pending, new) {
            (Op::Add(_), Op::Add(_)) => Some(Op::Add(sum)),
            _ => Some(Op::Incr(sum)),
        }
    }

    fn share(pending: &Op, new: &Op, combined: &Reply) -> (Reply, Reply) {
        match combined {
            Reply::Value(after) => {
                let between = after.wrapping_sub(amount(new));
                (accepted(pending, between), accepted(new, *after))
            }
            _ => (*combined, *combined),
        }
    }

    fn stands_for_both(combined: &Reply) -> bool {
        *combined != Reply::Refused
    }

    fn sample_state(rng: &mut Rng) -> Vec<u8> {
        let mut state = Vec::new();
        if rng.below(8) > 0 {
            sample(rng).write(&mut state);
        }
        state
    }

    fn sample_op(rng: &mut Rng) -> Op {
        let by = rng.below(9) as i64 - 4;
        match rng.below(12) {
            0 => Op::Set(sample(rng)),
            1 => Op::Get,
            2 => Op::Bounds,
            3 => Op::Add(i64::MIN),
            4..=6 => Op::Incr(by),
            _ => Op::Add(by),
        }
    }

    fn canonical(view: &[u8]) -> Vec<u8> {
        view.to_vec()
    }
}

/// Value and bounds of a state.
pub(crate) fn room(state: &[u8]) -> Option<(i64, i64, i64)> {
    Counter::read(state).map(|counter| (counter.value, counter.min, counter.max))
}

fn sample(rng: &mut Rng) -> Counter {
    let value = rng.below(5) as i64;
    let max = match rng.below(4) {
        0 => i64::MAX,
        _ => value + rng.below(7) as i64,
    };
    let min = value - rng.below(7) as i64;
    Counter { value, min, max }
}

impl DataType for Bounded {
    const REDIS_NAME: &'static str = "bcount";

    packed_alone!();

    fn len(view: &[u8]) -> usize {
        usize::from(!view.is_empty())
    }

    fn encoding(_: &[u8], _: &Tuning) -> &'static str {
        "int"
    }

    fn encode(op: &Op, out: &mut Vec<u8>) {
        match op {
            Op::Set(counter) => {
                out.push(b's');
                counter.write(out);
            }
            Op::Add(by) | Op::Incr(by) => {
                out.push(b'a');
                out.extend_from_slice(&by.to_le_bytes());
            }
            Op::Get | Op::Bounds => {}
        }
    }

    fn decode(from: &mut &[u8]) -> Result<Op, Corrupt> {
        let (kind, rest) = from.split_first().ok_or(Corrupt)?;
        match kind {
            b's' => {
                let (counter, rest) = rest.split_at_checked(24).ok_or(Corrupt)?;
                *from = rest;
                Counter::read(counter).map(Op::Set).ok_or(Corrupt)
            }
            b'a' => {
                let (by, rest) = rest.split_first_chunk().ok_or(Corrupt)?;
                *from = rest;
                Ok(Op::Add(i64::from_le_bytes(*by)))
            }
            _ => Err(Corrupt),
        }
    }

    fn extend(state: &mut Vec<u8>, chunk: &[u8], _: &Tuning) -> Result<(), Corrupt> {
        let counter = Counter::read(chunk).ok_or(Corrupt)?;
        state.clear();
        counter.write(state);
        Ok(())
    }
}
