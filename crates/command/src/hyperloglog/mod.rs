//! Commands on HyperLogLogs: sketches of sets in plain strings.

pub mod pfadd;
pub mod pfcount;
pub mod pfdebug;
pub mod pfmerge;

use crate::{Command, Ctx, Failure};
use rufous_datatype::hll::{HEADER_LEN, HllError};
use rufous_kernel::shard::{ExpirySetting, Key, NewValue, Value};
use std::ops::Range;

pub static COMMANDS: &[&Command] = &[
    &pfadd::PFADD,
    &pfcount::PFCOUNT,
    &pfmerge::PFMERGE,
    &pfdebug::PFDEBUG,
];

impl From<HllError> for Failure {
    fn from(error: HllError) -> Self {
        Failure(error.to_string().into())
    }
}

/// The value to be changed.
fn peek<'a>(ctx: &'a mut Ctx<'_>, key: Key<'_>) -> Result<Option<&'a [u8]>, Failure> {
    Ok(ctx.shard.peek(ctx.db, key, ctx.now)?.map(Value::bytes))
}

/// The value to be read.
fn get<'a>(ctx: &'a mut Ctx<'_>, key: Key<'_>) -> Result<Option<&'a [u8]>, Failure> {
    Ok(ctx.shard.get(ctx.db, key, ctx.now)?.map(Value::bytes))
}

/// How a value gets from what it was to what it is now.
enum Change {
    /// These bytes differ, or are new at the end.
    Ranges([Range<usize>; 2]),
    /// It is better rewritten.
    Whole,
}

impl Change {
    /// Of a sketch that was `old`; `None` where the key was missing.
    fn between(old: Option<&[u8]>, new: &[u8]) -> Self {
        match old {
            // A value that became dense shares no bytes with what it was.
            Some(old) if (old.len()..old.len() * 2).contains(&new.len()) => {
                let head = differing(&old[..HEADER_LEN], &new[..HEADER_LEN]);
                let body = differing(&old[HEADER_LEN..], &new[HEADER_LEN..]);
                Self::Ranges([head, body.start + HEADER_LEN..body.end + HEADER_LEN])
            }
            _ => Self::Whole,
        }
    }

    fn write(self, ctx: &mut Ctx<'_>, key: Key<'_>, new: Vec<u8>) {
        match self {
            Self::Ranges(ranges) => {
                let changed = ranges.into_iter().filter(|range| !range.is_empty());
                let write = |value: &mut [u8]| value.copy_from_slice(&new);
                ctx.shard
                    .edit((ctx.db, key), new.len(), changed, ctx.now, write);
            }
            Self::Whole => {
                let value = NewValue::Own(new);
                ctx.shard
                    .set(ctx.db, key, value, ExpirySetting::Keep, ctx.now);
            }
        }
    }
}

/// From the first byte that differs to the last; `new` is not shorter.
fn differing(old: &[u8], new: &[u8]) -> Range<usize> {
    let same = |pair: &(&u8, &u8)| pair.0 == pair.1;
    let start = old.iter().zip(new).take_while(same).count();
    let end = match new.len() == old.len() {
        true => {
            old.len()
                - old
                    .iter()
                    .rev()
                    .zip(new.iter().rev())
                    .take_while(same)
                    .count()
        }
        false => new.len(),
    };
    start..end.max(start)
}
