//! Summary bags [Claret §5]: numbers are added, and only what sums them up
//! can be asked for. Nothing else is kept, and adds are independent of adds.
//!
//! The sum is exact until it is read ([`exact`]): doubles that round at each
//! step would make the order of adds visible.
//!
//! State: how many, the least and the greatest value, the sum; numbers are
//! little endian. Of nothing added there is no byte.

pub mod exact;

use crate::algebra::{Algebra, Applied, Corrupt, DataType, Rule, Tuning, When};
use crate::declared::{operations, packed_alone, rules};
use crate::key::access::Mode;
use crate::key::footprint::Touch;
use exact::Exact;
use rufous_base::rng::Rng;

/// See the module's description.
#[derive(Debug)]
pub struct Bag;

operations! {
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub enum Op {
        /// A finite number, zero without a sign.
        Add(f64) = Add "add(x)",
        Count = Read "count(): int",
        Sum = Read "sum(): number",
        Mean = Read "mean(): number",
        Min = Read "min(): number",
        Max = Read "max(): number",
        /// All of these.
        Stats = Read "stats(): all of these",
    }
}

/// All that is known of a bag.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    pub count: u64,
    /// Rounded once; infinite where it is beyond doubles.
    pub sum: f64,
    /// Nothing of an empty bag, as the following.
    pub mean: Option<f64>,
    pub min: Option<f64>,
    pub max: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reply {
    Added,
    Count(u64),
    Number(Option<f64>),
    Stats(Stats),
}

/// A bag's state as numbers.
struct Parts {
    count: u64,
    min: f64,
    max: f64,
    sum: Exact,
}

const EMPTY: Parts = Parts {
    count: 0,
    min: f64::INFINITY,
    max: f64::NEG_INFINITY,
    sum: Exact::ZERO,
};

impl Parts {
    /// `None` of bytes that are no bag's.
    fn checked(bytes: &[u8]) -> Option<Parts> {
        let (count, rest) = bytes.split_first_chunk()?;
        let (min, rest) = rest.split_first_chunk()?;
        let (max, rest) = rest.split_first_chunk()?;
        let parts = Parts {
            count: u64::from_le_bytes(*count),
            min: f64::from_le_bytes(*min),
            max: f64::from_le_bytes(*max),
            sum: Exact::read(rest)?,
        };
        let sound = parts.count > 0
            && parts.min.is_finite()
            && parts.max.is_finite()
            && parts.min <= parts.max;
        sound.then_some(parts)
    }

    fn of(bytes: &[u8]) -> Parts {
        Parts::checked(bytes).unwrap_or(EMPTY)
    }

    fn add(&mut self, value: f64) {
        self.count = self.count.saturating_add(1);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum.add(value);
    }

    fn write(&self, out: &mut Vec<u8>) {
        if self.count > 0 {
            out.extend_from_slice(&self.count.to_le_bytes());
            out.extend_from_slice(&self.min.to_le_bytes());
            out.extend_from_slice(&self.max.to_le_bytes());
            self.sum.write(out);
        }
    }

    /// The mean, and whether it is not rounded.
    fn mean(&self) -> Option<(f64, bool)> {
        (self.count > 0).then(|| self.sum.divided(self.count))
    }

    fn reply(&self, op: &Op) -> Reply {
        let some = |value| (self.count > 0).then_some(value);
        match op {
            Op::Add(_) => Reply::Added,
            Op::Count => Reply::Count(self.count),
            Op::Sum => Reply::Number(Some(self.sum.to_f64())),
            Op::Mean => Reply::Number(self.mean().map(|(mean, _)| mean)),
            Op::Min => Reply::Number(some(self.min)),
            Op::Max => Reply::Number(some(self.max)),
            Op::Stats => Reply::Stats(Stats {
                count: self.count,
                sum: self.sum.to_f64(),
                mean: self.mean().map(|(mean, _)| mean),
                min: some(self.min),
                max: some(self.max),
            }),
        }
    }
}

/// The value as bags keep it, if they take it.
pub fn value(value: f64) -> Option<f64> {
    // Zeros are equal, and would differ in bytes.
    value.is_finite().then_some(value + 0.0)
}

/// The reply to a read, of the reply to one that stands for it.
fn part(op: &Op, of: &Reply) -> Reply {
    match (op, of) {
        (Op::Stats, _) => *of,
        (Op::Count, Reply::Stats(all)) => Reply::Count(all.count),
        (Op::Sum, Reply::Stats(all)) => Reply::Number(Some(all.sum)),
        (Op::Mean, Reply::Stats(all)) => Reply::Number(all.mean),
        (Op::Min, Reply::Stats(all)) => Reply::Number(all.min),
        (Op::Max, Reply::Stats(all)) => Reply::Number(all.max),
        _ => *of,
    }
}

rules! {
    static RULES of Bag:
        Add, Add: When::Always;
        Add, Count: "the count is not wanted", |_, read, _| !read.wanted;
        Add, Sum: "x = 0, or the sum is not wanted", |add, read, _| add.op == Op::Add(0.0) || !read.wanted;
        Add, Mean: "x is the mean of S, not rounded, or the mean is not wanted", |add, read, view| match (add.op, Parts::of(view).mean()) {
            (Op::Add(x), Some((mean, true))) => x == mean || !read.wanted,
            _ => !read.wanted,
        };
        Add, Min: "x ≥ min(S), or the minimum is not wanted", |add, read, view| match add.op {
            Op::Add(x) => x >= Parts::of(view).min || !read.wanted,
            _ => false,
        };
        Add, Max: "x ≤ max(S), or the maximum is not wanted", |add, read, view| match add.op {
            Op::Add(x) => x <= Parts::of(view).max || !read.wanted,
            _ => false,
        };
        Add, Stats: "they are not wanted", |_, read, _| !read.wanted;
}

impl Algebra for Bag {
    type State = Vec<u8>;
    type View<'a> = &'a [u8];
    type Op<'a> = Op;
    type Kind = Kind;
    type Reply = Reply;

    const NAME: &'static str = "summary bags";
    const ABOUT: &'static str = "Numbers are added, and only their count, sum, mean, minimum and \
        maximum can be asked for; nothing else is kept. The sum has no rounding in it until it is \
        read, and so adds are independent of adds, whatever is added.";

    fn empty() -> Vec<u8> {
        Vec::new()
    }

    fn view(state: &Vec<u8>) -> &[u8] {
        state
    }

    fn execute(view: &[u8], op: &Op) -> Reply {
        match op {
            Op::Add(_) => Reply::Added,
            _ => Parts::of(view).reply(op),
        }
    }

    fn commit(state: &mut Vec<u8>, op: &Op, _: &Tuning) {
        if let Op::Add(value) = op {
            let mut parts = Parts::of(state);
            parts.add(*value);
            state.clear();
            parts.write(state);
        }
    }

    fn apply(state: &mut Vec<u8>, op: &Op, tuning: &Tuning) -> Applied<Reply> {
        Self::commit(state, op, tuning);
        Applied {
            reply: Self::execute(state, op),
            changed: matches!(op, Op::Add(_)),
        }
    }

    fn rules() -> &'static [Rule<Self>] {
        RULES
    }

    fn touch(op: &Op, touch: &mut Touch) {
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
        match (pending, new) {
            (Op::Add(_), _) | (_, Op::Add(_)) => None,
            (one, other) if one == other => Some(*one),
            _ => Some(Op::Stats),
        }
    }

    fn share(pending: &Op, new: &Op, combined: &Reply) -> (Reply, Reply) {
        (part(pending, combined), part(new, combined))
    }

    fn sample_state(rng: &mut Rng) -> Vec<u8> {
        let mut parts = EMPTY;
        for _ in 0..rng.below(4) {
            parts.add(sample(rng));
        }
        let mut state = Vec::new();
        parts.write(&mut state);
        state
    }

    fn sample_op(rng: &mut Rng) -> Op {
        match rng.below(10) {
            0 => Op::Count,
            1 => Op::Sum,
            2 => Op::Mean,
            3 => Op::Min,
            4 => Op::Max,
            5 => Op::Stats,
            _ => Op::Add(sample(rng)),
        }
    }

    fn canonical(view: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        Parts::of(view).write(&mut bytes);
        bytes
    }
}

fn sample(rng: &mut Rng) -> f64 {
    match rng.below(12) {
        0 => 0.1,
        1 => -1e17,
        2 => f64::MAX,
        n => n as f64 - 5.0,
    }
}

impl DataType for Bag {
    const REDIS_NAME: &'static str = "bag";

    packed_alone!();

    fn len(view: &[u8]) -> usize {
        usize::from(!view.is_empty())
    }

    fn encoding(_: &[u8], _: &Tuning) -> &'static str {
        "exact"
    }

    fn encode(op: &Op, out: &mut Vec<u8>) {
        if let Op::Add(value) = op {
            out.extend_from_slice(&value.to_le_bytes());
        }
    }

    fn decode(from: &mut &[u8]) -> Result<Op, Corrupt> {
        let (bytes, rest) = from.split_first_chunk().ok_or(Corrupt)?;
        let value = value(f64::from_le_bytes(*bytes)).ok_or(Corrupt)?;
        *from = rest;
        Ok(Op::Add(value))
    }

    fn extend(state: &mut Vec<u8>, chunk: &[u8], _: &Tuning) -> Result<(), Corrupt> {
        let parts = Parts::checked(chunk).ok_or(Corrupt)?;
        state.clear();
        parts.write(state);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_order_of_adds_gives_the_same_bytes() {
        let values = [0.1, 1e300, -7.5, -1e300, 3e-320, 0.2, 1e17, 1.0];
        let state = |values: &mut dyn Iterator<Item = &f64>| {
            let mut state = Bag::empty();
            values.for_each(|x| Bag::commit(&mut state, &Op::Add(*x), &Tuning::default()));
            state
        };
        let (one, other) = (state(&mut values.iter()), state(&mut values.iter().rev()));
        assert_eq!(one, other);
        assert_eq!(
            Bag::execute(&one, &Op::Sum),
            Reply::Number(Some(99_999_999_999_999_993.8))
        );
        assert_eq!(Bag::execute(&one, &Op::Min), Reply::Number(Some(-1e300)));
    }

    #[test]
    fn small_numbers_take_few_bytes() {
        let mut state = Bag::empty();
        for n in 0..1000 {
            Bag::commit(&mut state, &Op::Add(f64::from(n)), &Tuning::default());
        }
        assert!(state.len() <= 24 + 1 + 16, "{}", state.len());
    }
}
