//! What blocking commands have in common: for how long they wait.

use crate::{Ctx, Failure, Flags, Spec};
use rufous_base::{Args, Now};
use rufous_datatype::float::parse_f64;
use std::borrow::Cow;

const NOT_A_TIMEOUT: Failure = Failure(Cow::Borrowed("ERR timeout is not a float or out of range"));
const OUT_OF_RANGE: Failure = Failure(Cow::Borrowed("ERR timeout is out of range"));
const NEGATIVE: Failure = Failure(Cow::Borrowed("ERR timeout is negative"));

/// A timeout in seconds, as microseconds; `None` is for ever. Counted in
/// whole milliseconds, the last one whole.
pub fn timeout(ctx: &Ctx<'_>, arg: &[u8]) -> Result<Option<u64>, Failure> {
    timeout_us(ctx.now, arg)
}

/// The argument of a blocking command that is its timeout.
pub fn timeout_at(spec: &Spec, args: &Args<'_>) -> usize {
    if spec.flags.has(Flags::TIMEOUT_FIRST) {
        1
    } else {
        args.len() - 1
    }
}

/// When the wait of a blocking command that arrives now times out; `None`: never, or its timeout is
/// none.
pub fn deadline_us(spec: &Spec, args: &Args<'_>, now: Now) -> Option<u64> {
    let timeout = timeout_us(now, args.get(timeout_at(spec, args)));
    Some(now.mono_us.saturating_add(timeout.ok()??))
}

fn timeout_us(now: Now, arg: &[u8]) -> Result<Option<u64>, Failure> {
    let seconds = parse_f64(arg).ok_or(NOT_A_TIMEOUT)?;
    let ms = (seconds * 1_000.0).ceil();
    let end = i64::MAX as u64 - now.unix_ms();
    match ms {
        ..0.0 => Err(NEGATIVE),
        0.0 => Ok(None),
        _ if ms >= end as f64 => Err(OUT_OF_RANGE),
        _ => Ok(Some((ms as u64).saturating_mul(1_000))),
    }
}

#[cfg(test)]
crate::testing::transcripts! {
    timeouts: "
        BLPOP k x => -ERR timeout is not a float or out of range
        BLPOP k nan => -ERR timeout is not a float or out of range
        BLPOP k '' => -ERR timeout is not a float or out of range
        BLPOP k 1e999 => -ERR timeout is not a float or out of range
        BLPOP k -1 => -ERR timeout is negative
        BLPOP k -0.001 => -ERR timeout is negative
        BLPOP k 1e20 => -ERR timeout is out of range
        BLPOP k 9223372036854775 => -ERR timeout is out of range
        BLPOP k 0.0001 => *-1
        BLPOP k -0.0001 => *-1
    "
}
