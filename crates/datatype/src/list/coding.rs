//! Encoding of operations for logs and replicas: a byte for the kind, numbers with seven bits per byte, elements as
//! in a [pack](crate::pack).

use super::{Op, Side};
use crate::pack::{self, Pack};

const PUSH_FRONT: u8 = 0;
const PUSH_BACK: u8 = 1;
const POP_FRONT: u8 = 2;
const POP_BACK: u8 = 3;
const SET: u8 = 4;
const INSERT_BEFORE: u8 = 5;
const INSERT_AFTER: u8 = 6;
const REMOVE: u8 = 7;
const TRIM: u8 = 8;

/// Reads are not committed and have no bytes.
pub(super) fn encode(op: &Op<'_>, out: &mut Vec<u8>) {
    let element = |out: &mut Vec<u8>, tag, element| {
        out.push(tag);
        pack::push(out, element);
    };
    match *op {
        Op::PushFront { element: e } => element(out, PUSH_FRONT, e),
        Op::PushBack { element: e } => element(out, PUSH_BACK, e),
        Op::PopFront { count } => {
            out.push(POP_FRONT);
            number(count, out);
        }
        Op::PopBack { count } => {
            out.push(POP_BACK);
            number(count, out);
        }
        Op::Set { index, element: e } => {
            element(out, SET, e);
            signed(index, out);
        }
        Op::Insert {
            side,
            pivot,
            element: e,
        } => {
            let tag = match side {
                Side::Before => INSERT_BEFORE,
                Side::After => INSERT_AFTER,
            };
            element(out, tag, pivot);
            pack::push(out, e);
        }
        Op::Remove { count, element: e } => {
            element(out, REMOVE, e);
            signed(count, out);
        }
        Op::Trim { start, stop } => {
            out.push(TRIM);
            signed(start, out);
            signed(stop, out);
        }
        Op::Index { .. } | Op::Range { .. } | Op::Length | Op::Position(_) => {}
    }
}

pub(super) fn decode<'a>(from: &mut &'a [u8]) -> Option<Op<'a>> {
    let (&tag, rest) = from.split_first()?;
    *from = rest;
    Some(match tag {
        PUSH_FRONT => Op::PushFront {
            element: entry(from)?,
        },
        PUSH_BACK => Op::PushBack {
            element: entry(from)?,
        },
        POP_FRONT => Op::PopFront {
            count: take_number(from)?,
        },
        POP_BACK => Op::PopBack {
            count: take_number(from)?,
        },
        SET => {
            let element = entry(from)?;
            let index = take_signed(from)?;
            Op::Set { index, element }
        }
        INSERT_BEFORE | INSERT_AFTER => Op::Insert {
            side: [Side::Before, Side::After][usize::from(tag == INSERT_AFTER)],
            pivot: entry(from)?,
            element: entry(from)?,
        },
        REMOVE => {
            let element = entry(from)?;
            let count = take_signed(from)?;
            Op::Remove { count, element }
        }
        TRIM => Op::Trim {
            start: take_signed(from)?,
            stop: take_signed(from)?,
        },
        _ => return None,
    })
}

fn entry<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let pack = Pack(from);
    let (entry, end) = (pack.entry_at(0)?, pack.next_offset(0)?);
    *from = &from[end..];
    Some(entry)
}

fn number(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn take_number(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Small numbers of either sign take few bytes: 0, -1, 1, -2…
fn signed(value: i64, out: &mut Vec<u8>) {
    number((value << 1 ^ value >> 63) as u64, out);
}

fn take_signed(from: &mut &[u8]) -> Option<i64> {
    let value = take_number(from)?;
    Some((value >> 1) as i64 ^ -((value & 1) as i64))
}
