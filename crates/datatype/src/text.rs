//! Strings: bytes that are read and written whole or in part, counted up, or
//! taken as bits. Keys hold them without a shape of their own, so that this is
//! their algebra alone; commands work on the stored bytes.
//!
//! | module | what |
//! |---|---|
//! | [`act`] | what an operation does to a string, and whether it changes this one |
//! | [`independence`] | which operations are independent |
//! | [`combining`] | which operations one other stands for |

mod act;
mod combining;
mod independence;

use crate::algebra::{Algebra, Applied, Held, Rule, Tuning};
use crate::bits::{bitcount, getbit};
use crate::declared::operations;
use crate::key::access::Mode;
use crate::key::footprint::Touch;
use crate::range::{check_string_len, setrange_offset, string_range};
use crate::{DEFAULT_MAX_BULK_LEN, ValueError, float, integer};
use rufous_base::rng::Rng;

/// See the module's description.
#[derive(Debug)]
pub struct Text;

operations! {
    /// An operation on a string. Arguments are parsed: a bit's offset lies within
    /// the longest string.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Op<'a> {
        Get = Read "get(): bytes",
        StrLen = Read "strlen(): int",
        /// Both ends inclusive; negative ones count from the end.
        GetRange { start: i64, end: i64 } = Read "getrange(x): bytes",
        GetBit { offset: u64 } = Read "getbit(x): bit",
        BitCount = Read "bitcount(): int",
        Set { value: &'a [u8] } = Alone "set(x): void",
        /// Sets, and replies with the previous value.
        GetSet { value: &'a [u8] } = Alone "getset(x): bytes",
        Delete = Remove "delete(): bool",
        GetDel = Remove "getdel(): bytes",
        /// Sets what is missing.
        SetNx { value: &'a [u8] } = Alone "setnx(x): bool",
        SetRange { offset: i64, value: &'a [u8] } = Add "setrange(x): length",
        SetBit { offset: u64, bit: bool } = Add "setbit(x): bit",
        Append { value: &'a [u8] } = Alone "append(x): length",
        Incr { by: i64 } = Add "incr(x): int",
        IncrFloat { by: &'a [u8] } = Alone "incrbyfloat(x): bytes",
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Done,
    /// A bit, or whether something was done.
    Flag(bool),
    Number(i64),
    Bytes(Option<Vec<u8>>),
    Error(ValueError),
}

type View<'a> = Option<&'a [u8]>;

fn len(view: View<'_>) -> u64 {
    view.map_or(0, |bytes| bytes.len() as u64)
}

impl Algebra for Text {
    /// Nothing where the key is missing.
    type State = Option<Vec<u8>>;
    type View<'a> = View<'a>;
    type Op<'a> = Op<'a>;
    type Kind = Kind;
    type Reply = Reply;

    const NAME: &'static str = "strings";
    const ABOUT: &'static str = "Bytes, read and written whole or in part; a counter where they \
        are a number, and bits. Parts that do not touch are independent, and so are counts whose \
        replies nobody wants. The table leaves out one case that holds for every pair: operations \
        that change nothing in S are independent.";
    const BEYOND_PAIRS: Option<&'static str> = Some(
        "Counts are looked at all together: those that fit must fit in every order, near the \
        limits of 64 bits, and those that do not fit must not fit in any. All that is appended \
        together must fit into the longest string.",
    );

    fn empty() -> Option<Vec<u8>> {
        None
    }

    fn view(state: &Option<Vec<u8>>) -> View<'_> {
        state.as_deref()
    }

    fn execute(view: View<'_>, op: &Op<'_>) -> Reply {
        let bytes = view.unwrap_or_default();
        match *op {
            Op::Get | Op::GetSet { .. } | Op::GetDel => Reply::Bytes(view.map(<[u8]>::to_vec)),
            Op::StrLen => Reply::Number(len(view) as i64),
            Op::GetRange { start, end } => {
                let range = string_range(start, end, bytes.len());
                Reply::Bytes(Some(bytes[range].to_vec()))
            }
            Op::GetBit { offset } | Op::SetBit { offset, .. } => Reply::Flag(getbit(bytes, offset)),
            Op::BitCount => Reply::Number(bitcount(bytes) as i64),
            Op::Set { .. } => Reply::Done,
            Op::Delete => Reply::Flag(view.is_some()),
            Op::SetNx { .. } => Reply::Flag(view.is_none()),
            Op::SetRange { offset, value } => {
                match setrange_offset(offset, value.len(), DEFAULT_MAX_BULK_LEN) {
                    Err(error) => Reply::Error(error),
                    Ok(_) if value.is_empty() => Reply::Number(len(view) as i64),
                    Ok(at) => Reply::Number((at + value.len()).max(bytes.len()) as i64),
                }
            }
            Op::Append { value } => {
                let added = value.len() as u64;
                match check_string_len(len(view), added, DEFAULT_MAX_BULK_LEN) {
                    Err(error) => Reply::Error(error),
                    Ok(()) => Reply::Number((len(view) + added) as i64),
                }
            }
            Op::Incr { by } => {
                integer::increment(view, by).map_or_else(Reply::Error, Reply::Number)
            }
            Op::IncrFloat { by } => float::increment(view, by)
                .map_or_else(Reply::Error, |text| Reply::Bytes(Some(text))),
        }
    }

    fn commit(state: &mut Option<Vec<u8>>, op: &Op<'_>, _: &Tuning) {
        act::act(op).perform(state);
    }

    fn apply(state: &mut Option<Vec<u8>>, op: &Op<'_>, _: &Tuning) -> Applied<Reply> {
        let reply = Self::execute(state.as_deref(), op);
        let changed = act::act(op).perform(state);
        Applied { reply, changed }
    }

    fn rules() -> &'static [Rule<Self>] {
        independence::rules()
    }

    fn admits<'a>(held: &[Held<Op<'a>>], new: &Held<Op<'a>>, view: View<'_>) -> bool {
        independence::admits(held, new, view)
    }

    fn touch(op: &Op<'_>, touch: &mut Touch) {
        let (update, taken) = (touch.update_or(Mode::Write), touch.update_or(Mode::Discard));
        match *op {
            Op::Get | Op::GetRange { .. } | Op::BitCount => {
                touch.reads_all();
            }
            Op::StrLen => {
                touch.sees().size(Mode::Read);
            }
            Op::GetBit { offset } => {
                touch.sees().element(&offset.to_le_bytes(), Mode::Read);
            }
            Op::Set { .. } => {
                touch.makes().whole(Mode::Write);
            }
            Op::Delete | Op::GetDel => {
                touch.ends(1).whole(taken);
            }
            // The longest of all decides the length.
            Op::SetBit { offset, .. } => {
                touch.makes().size(Mode::Shift);
                touch.element(&offset.to_le_bytes(), update);
            }
            Op::Incr { by } if !touch.is_wanted() => {
                touch.makes().whole(Mode::Count(by));
            }
            Op::GetSet { .. }
            | Op::SetNx { .. }
            | Op::SetRange { .. }
            | Op::Append { .. }
            | Op::Incr { .. }
            | Op::IncrFloat { .. } => {
                touch.makes().whole(update);
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
        // A sum may not fit where its first part does.
        *combined != Reply::Error(ValueError::Overflow)
    }

    fn sample_state(rng: &mut Rng) -> Option<Vec<u8>> {
        match rng.below(8) {
            0 => None,
            1..=4 => Some(sample_number(rng)),
            _ => Some(sample_bytes(rng).to_vec()),
        }
    }

    fn sample_op(rng: &mut Rng) -> Op<'static> {
        let value = sample_bytes(rng);
        let mut index = || rng.below(10) as i64 - 3;
        let (start, end) = (index(), index());
        let offset = rng.below(50);
        match rng.below(17) {
            0 => Op::Get,
            1 => Op::StrLen,
            2..=3 => Op::GetRange { start, end },
            4 => Op::GetBit { offset },
            5 => Op::BitCount,
            6 => Op::Set { value },
            7 => Op::GetSet { value },
            8 => Op::Delete,
            9 => Op::GetDel,
            10 => Op::SetNx { value },
            11..=12 => Op::SetRange {
                offset: start,
                value,
            },
            13 => Op::SetBit {
                offset,
                bit: rng.below(2) == 0,
            },
            14 => Op::Append { value },
            15 => Op::Incr {
                by: pick(rng, &[-3, -2, -1, 0, 1, 1, 2, 2, 3, i64::MAX, i64::MIN]),
            },
            _ => Op::IncrFloat {
                by: pick(rng, &[&b"0"[..], b"0.5", b"-1", b"1e30"]),
            },
        }
    }

    fn canonical(view: View<'_>) -> Vec<u8> {
        match view {
            None => Vec::new(),
            Some(bytes) => [b"=", bytes].concat(),
        }
    }
}

fn pick<V: Copy>(rng: &mut Rng, from: &[V]) -> V {
    from[rng.below(from.len() as u64) as usize]
}

fn sample_bytes(rng: &mut Rng) -> &'static [u8] {
    const BYTES: [&[u8]; 8] = [b"", b"o", b"ok", b"okok", b"hello", b"5", b"\0", b"1.5"];
    pick(rng, &BYTES)
}

/// Some of them so near to the limits that counting must look at all.
fn sample_number(rng: &mut Rng) -> Vec<u8> {
    let near = rng.below(6) as i64;
    let mut text = Vec::new();
    integer::write_i64(
        &mut text,
        pick(rng, &[near, i64::MAX - near, i64::MIN + near]),
    );
    text
}

#[cfg(test)]
mod tests;
