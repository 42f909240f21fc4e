//! Hashes: fields with values, some of which are numbers that grow.
//!
//! Map: this file says what operations do, `independence` which of them
//! depend on each other, `combining` which are done together.

mod combining;
mod independence;

use crate::algebra::{Algebra, Applied, Corrupt, DataType, Held, Rule, Tuning, independent};
use crate::declared::{in_table, operations};
use crate::float::LongDouble;
use crate::key::access::Mode;
use crate::key::footprint::Touch;
use crate::pack::{self, Pack};
use crate::replicated::{Replicate, shared_hash};
use crate::table::{self, Put, Shape, Table};
use crate::{ValueError, integer};
use rufous_base::rng::Rng;
use std::collections::BTreeMap;

/// See the module's description.
#[derive(Debug)]
pub struct Hash;

pub type State = Table<2>;
pub type View<'a> = table::View<'a, 2>;

operations! {
    #[derive(Clone, Copy, Debug)]
    pub enum Op<'a> {
        /// Answers whether the field is new.
        Set { field: &'a [u8], value: &'a [u8] } = Add "set(x, v): bool",
        /// Likewise, and changes nothing if it is not.
        SetNew { field: &'a [u8], value: &'a [u8] } = Add "setnew(x, v): bool",
        /// Answers whether the field was there.
        Delete { field: &'a [u8] } = Remove "delete(x): bool",
        /// Answers the sum; a field that is not there counts as 0.
        Increment { field: &'a [u8], by: i64 } = Add "increment(x, n): int",
        /// Likewise. `by` is a finite number as text: what is read of it depends
        /// on no rounding that happened before.
        IncrementFloat { field: &'a [u8], by: &'a [u8] } = Add "incrementfloat(x, r): float",
        Get { field: &'a [u8] } = Read "get(x): value",
        Exists { field: &'a [u8] } = Read "exists(x): bool",
        StrLen { field: &'a [u8] } = Read "strlen(x): int",
        Length = Read "length(): int",
        All = Read "all(): pairs",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Bool(bool),
    Count(usize),
    Value(Option<Vec<u8>>),
    Integer(Result<i64, ValueError>),
    Float(Result<Vec<u8>, ValueError>),
    Pairs(BTreeMap<Vec<u8>, Vec<u8>>),
}

impl Reply {
    /// Whether it says yes.
    #[inline]
    pub fn is_true(&self) -> bool {
        *self == Reply::Bool(true)
    }
}

#[inline]
fn shape(tuning: &Tuning) -> Shape {
    Shape {
        packing: tuning.hash,
        seed: tuning.seed,
    }
}

/// The field that an operation is about.
fn field<'a>(op: &Op<'a>) -> Option<&'a [u8]> {
    match *op {
        Op::Set { field, .. }
        | Op::SetNew { field, .. }
        | Op::Delete { field }
        | Op::Increment { field, .. }
        | Op::IncrementFloat { field, .. }
        | Op::Get { field }
        | Op::Exists { field }
        | Op::StrLen { field } => Some(field),
        Op::Length | Op::All => None,
    }
}

/// What [`Op::Increment`] leaves behind.
fn sum(current: Option<&[u8]>, by: i64) -> Result<i64, ValueError> {
    let current = match current {
        Some(text) => integer::parse_i64(text).ok_or(ValueError::HashNotInteger)?,
        None => 0,
    };
    integer::add(current, by)
}

/// Likewise of [`Op::IncrementFloat`].
fn float_sum(current: Option<&[u8]>, by: &[u8]) -> Result<Vec<u8>, ValueError> {
    let by = finite(by)?;
    let current = match current {
        Some(text) => LongDouble::parse(text).ok_or(ValueError::HashNotFloat)?,
        None => LongDouble::ZERO,
    };
    let sum = current.checked_add(by).ok_or(ValueError::NanOrInfinity)?;
    Ok(sum.to_text())
}

/// What a field may be incremented by.
pub fn finite(by: &[u8]) -> Result<LongDouble, ValueError> {
    let by = LongDouble::parse(by).ok_or(ValueError::NotFloat)?;
    if by.is_finite() {
        Ok(by)
    } else {
        Err(ValueError::IncrementNanOrInfinity)
    }
}

impl Algebra for Hash {
    type State = State;
    type View<'a> = View<'a>;
    type Op<'a> = Op<'a>;
    type Kind = Kind;
    type Reply = Reply;

    const NAME: &'static str = "hashes";
    const ABOUT: &'static str = "Fields with values. Operations on different fields never meet; \
        increments of one field never do either, as long as nobody wants to know the sum and it \
        stays within 64 bits. Sums of floating-point numbers are rounded and so depend on their \
        order.";

    fn empty() -> State {
        Table::default()
    }

    fn view(state: &State) -> View<'_> {
        state.view()
    }

    fn execute(view: View<'_>, op: &Op<'_>) -> Reply {
        match *op {
            Op::Set { field, .. } | Op::SetNew { field, .. } => Reply::Bool(!view.contains(field)),
            Op::Delete { field } | Op::Exists { field } => Reply::Bool(view.contains(field)),
            Op::Increment { field, by } => Reply::Integer(sum(view.get(field), by)),
            Op::IncrementFloat { field, by } => Reply::Float(float_sum(view.get(field), by)),
            Op::Get { field } => Reply::Value(view.get(field).map(<[u8]>::to_vec)),
            Op::StrLen { field } => Reply::Count(view.get(field).map_or(0, <[u8]>::len)),
            Op::Length => Reply::Count(view.len()),
            Op::All => {
                let pair = |(field, value): (&[u8], &[u8])| (field.to_vec(), value.to_vec());
                Reply::Pairs(view.iter().map(pair).collect())
            }
        }
    }

    fn commit(state: &mut State, op: &Op<'_>, tuning: &Tuning) {
        Self::apply(state, op, tuning);
    }

    #[inline]
    fn apply(state: &mut State, op: &Op<'_>, tuning: &Tuning) -> Applied<Reply> {
        let shape = shape(tuning);
        let (reply, changed) = match *op {
            Op::Set { field, value } => {
                let put = state.put(field, value, &shape);
                (Reply::Bool(put == Put::New), put != Put::Same)
            }
            Op::SetNew { field, value } => {
                let new = !state.view().contains(field);
                if new {
                    state.put(field, value, &shape);
                }
                (Reply::Bool(new), new)
            }
            Op::Delete { field } => {
                let there = state.remove(field);
                (Reply::Bool(there), there)
            }
            Op::Increment { field, by } => {
                let sum = sum(state.view().get(field), by);
                let put = sum.ok().map(|sum| {
                    let mut digits = itoa::Buffer::new();
                    state.put(field, digits.format(sum).as_bytes(), &shape)
                });
                (Reply::Integer(sum), put.is_some_and(|put| put != Put::Same))
            }
            Op::IncrementFloat { field, by } => {
                let sum = float_sum(state.view().get(field), by);
                let put = sum.as_ref().ok();
                let put = put.map(|sum| state.put(field, sum, &shape));
                (Reply::Float(sum), put.is_some_and(|put| put != Put::Same))
            }
            _ => (Self::execute(state.view(), op), false),
        };
        Applied { reply, changed }
    }

    fn rules() -> &'static [Rule<Self>] {
        independence::RULES
    }

    fn admits<'a>(held: &[Held<Self::Op<'a>>], new: &Held<Self::Op<'a>>, view: View<'_>) -> bool {
        held.iter().all(|held| independent::<Self>(held, new, view))
            && independence::sums_fit(held, new, view)
    }

    const BEYOND_PAIRS: Option<&'static str> = Some(
        "Increments of one field are admitted only as far as the field stays within 64 bits \
         whichever of them come first.",
    );

    fn touch(op: &Op<'_>, touch: &mut Touch) {
        let update = touch.update_or(Mode::Write);
        match *op {
            Op::Set { field, .. }
            | Op::SetNew { field, .. }
            | Op::Increment { field, .. }
            | Op::IncrementFloat { field, .. } => {
                touch.makes().element(field, update).size(Mode::Shift);
            }
            Op::Delete { field } => {
                let mode = touch.update_or(Mode::Discard);
                touch.ends(1).element(field, mode).size(Mode::Shift);
            }
            Op::Get { field } | Op::Exists { field } | Op::StrLen { field } => {
                touch.sees().element(field, Mode::Read);
            }
            Op::Length => {
                touch.sees().size(Mode::Read);
            }
            Op::All => {
                touch.reads_all();
            }
        }
    }

    fn combine<'a>(pending: &Self::Op<'a>, new: &Self::Op<'a>) -> Option<Self::Op<'a>> {
        combining::combine(pending, new)
    }

    fn share(pending: &Op<'_>, new: &Op<'_>, combined: &Reply) -> (Reply, Reply) {
        combining::share(pending, new, combined)
    }

    fn stands_for_both(combined: &Reply) -> bool {
        // The first of two sums may fit where both do not.
        !matches!(combined, Reply::Integer(Err(ValueError::Overflow)))
    }

    fn sample_state(rng: &mut Rng) -> State {
        let mut state = State::default();
        for field in FIELDS {
            if rng.below(3) > 0 {
                let value = VALUES[rng.below(VALUES.len() as u64) as usize];
                state.put(field, value, &shape(&Tuning::default()));
            }
        }
        state
    }

    fn sample_op(rng: &mut Rng) -> Op<'static> {
        let mut pick = |from: &[&'static [u8]]| from[rng.below(from.len() as u64) as usize];
        let (field, value, float) = (pick(&FIELDS), pick(&VALUES), pick(&FLOATS));
        let by = [1, 2, -1, 0, i64::MAX, -6][rng.below(6) as usize];
        match rng.below(16) {
            0 | 1 => Op::Set { field, value },
            2 => Op::SetNew { field, value },
            3 | 4 => Op::Delete { field },
            5..=8 => Op::Increment { field, by },
            9 => Op::IncrementFloat { field, by: float },
            10 | 11 => Op::Get { field },
            12 => Op::Exists { field },
            13 => Op::StrLen { field },
            14 => Op::Length,
            _ => Op::All,
        }
    }

    fn canonical(view: View<'_>) -> Vec<u8> {
        view.canonical()
    }
}

/// What samples are made of.
const FIELDS: [&[u8]; 3] = [b"f", b"", b"longer"];
const VALUES: [&[u8]; 7] = [
    b"",
    b"5",
    b"-3",
    b"7.50",
    b"text",
    b"9223372036854775806",
    b"a longer value",
];
const FLOATS: [&[u8]; 4] = [b"0", b"0.1", b"-2.5", b"1e300"];

impl DataType for Hash {
    const REDIS_NAME: &'static str = "hash";
    const REPLICATE: Option<Replicate<Self>> = Some(shared_hash::REPLICATE);

    in_table!(shape);

    fn encoding(view: View<'_>, _: &Tuning) -> &'static str {
        match view {
            View::Large(_) => "hashtable",
            View::Packed(_) => "listpack",
        }
    }

    fn encode(op: &Op<'_>, out: &mut Vec<u8>) {
        let (code, field, rest) = match *op {
            Op::Set { field, value } => (SET, field, Some(value)),
            Op::SetNew { field, value } => (SET_NEW, field, Some(value)),
            Op::Delete { field } => (DELETE, field, None),
            Op::Increment { field, by } => {
                out.push(INCREMENT);
                pack::push(out, field);
                out.extend_from_slice(&by.to_le_bytes());
                return;
            }
            Op::IncrementFloat { field, by } => (INCREMENT_FLOAT, field, Some(by)),
            _ => return,
        };
        out.push(code);
        pack::push(out, field);
        if let Some(rest) = rest {
            pack::push(out, rest);
        }
    }

    fn decode<'a>(from: &mut &'a [u8]) -> Result<Op<'a>, Corrupt> {
        let (&code, mut rest) = from.split_first().ok_or(Corrupt)?;
        let field = table::take(&mut rest)?;
        let op = match code {
            DELETE => Op::Delete { field },
            INCREMENT => {
                let (&by, after) = rest.split_first_chunk().ok_or(Corrupt)?;
                rest = after;
                let by = i64::from_le_bytes(by);
                Op::Increment { field, by }
            }
            SET | SET_NEW | INCREMENT_FLOAT => {
                let value = table::take(&mut rest)?;
                match code {
                    SET => Op::Set { field, value },
                    SET_NEW => Op::SetNew { field, value },
                    _ => Op::IncrementFloat { field, by: value },
                }
            }
            _ => return Err(Corrupt),
        };
        *from = rest;
        Ok(op)
    }
}

/// Operations as logs have them: a code, the field, and what else there is.
const SET: u8 = 0;
const SET_NEW: u8 = 1;
const DELETE: u8 = 2;
const INCREMENT: u8 = 3;
const INCREMENT_FLOAT: u8 = 4;
