//! Registers as runs of equal ranks:
//!
//! ```text
//! ZERO   00llllll            l + 1 registers at zero
//! XZERO  01llllll llllllll   l + 1 registers at zero
//! VAL    1rrrrrll            l + 1 registers at rank r + 1
//! ```
//! Which of several ways to write the same registers results depends on the order in which they
//! were raised; it is the order of Redis, so that its values are equal bytes.

use super::{HEADER_LEN, HllError, Observation, REGISTERS};
use std::fmt::Write;

const ZERO_MAX_LEN: usize = 64;
const VAL_MAX_LEN: usize = 4;
const VAL_MAX_RANK: u8 = 32;
/// How many runs after a change are looked at for neighbours to join.
const JOIN_STEPS: usize = 5;

/// Some registers of equal rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// 0 to 32.
    pub(super) rank: u8,
    pub(super) len: usize,
    /// How many bytes the run is written in.
    width: usize,
}

/// What [`raise`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The register was not lower.
    Same,
    Raised,
    /// Nothing: the result does not fit, or the rank is not one that a run can have.
    TooLong,
}

/// The run that `bytes` begin with; `None` at the end, and where a run is cut off.
fn first_run(bytes: &[u8]) -> Option<Run> {
    let first = *bytes.first()?;
    Some(match first >> 6 {
        0 => Run {
            rank: 0,
            len: usize::from(first) + 1,
            width: 1,
        },
        1 => Run {
            rank: 0,
            len: (usize::from(first & 63) << 8 | usize::from(*bytes.get(1)?)) + 1,
            width: 2,
        },
        _ => Run {
            rank: (first >> 2 & 31) + 1,
            len: usize::from(first & 3) + 1,
            width: 1,
        },
    })
}

/// The runs of a value without its header.
pub(super) fn runs(body: &[u8]) -> impl Iterator<Item = Run> {
    let mut rest = body;
    std::iter::from_fn(move || {
        let run = first_run(rest)?;
        rest = &rest[run.width..];
        Some(run)
    })
}

/// Whether the runs are of all registers, no more, and nothing else follows.
pub(super) fn check(body: &[u8]) -> Result<(), HllError> {
    let (mut registers, mut bytes) = (0, 0);
    for run in runs(body) {
        registers += run.len;
        bytes += run.width;
        if registers > REGISTERS {
            break;
        }
    }
    match registers == REGISTERS && bytes == body.len() {
        true => Ok(()),
        false => Err(HllError::Corrupted),
    }
}

pub(super) fn checked_runs(body: &[u8]) -> Result<impl Iterator<Item = Run>, HllError> {
    check(body)?;
    Ok(runs(body))
}

pub(super) fn write_empty(out: &mut Vec<u8>) {
    put_run(out, 0, REGISTERS);
}

/// Raises a register of a value that was checked.
pub(super) fn raise(value: &mut Vec<u8>, seen: Observation, max_bytes: usize) -> Outcome {
    if seen.rank > VAL_MAX_RANK {
        return Outcome::TooLong;
    }
    let (mut at, mut first, mut previous) = (HEADER_LEN, 0, None);
    let run = loop {
        let Some(run) = first_run(&value[at..]) else {
            debug_assert!(false, "the runs were checked");
            return Outcome::Same;
        };
        if seen.index < first + run.len {
            break run;
        }
        previous = Some(at);
        at += run.width;
        first += run.len;
    };
    if run.rank >= seen.rank {
        return Outcome::Same;
    }
    let mut parts = Vec::with_capacity(5);
    put_run(&mut parts, run.rank, seen.index - first);
    put_run(&mut parts, seen.rank, 1);
    put_run(&mut parts, run.rank, first + run.len - 1 - seen.index);
    if parts.len() > run.width && value.len() + parts.len() - run.width > max_bytes {
        return Outcome::TooLong;
    }
    value.splice(at..at + run.width, parts);
    join(value, previous.unwrap_or(HEADER_LEN));
    Outcome::Raised
}

/// Joins runs of equal rank that fit in one, from `at` on.
fn join(value: &mut Vec<u8>, mut at: usize) {
    for _ in 0..JOIN_STEPS {
        let Some(run) = first_run(&value[at..]) else {
            return;
        };
        let next = first_run(&value[at + run.width..]);
        match next {
            Some(next)
                if run.rank > 0 && run.rank == next.rank && run.len + next.len <= VAL_MAX_LEN =>
            {
                value[at] = val(run.rank, run.len + next.len);
                value.remove(at + 1);
            }
            _ => at += run.width,
        }
    }
}

/// The byte of a VAL run.
fn val(rank: u8, len: usize) -> u8 {
    0x80 | (rank - 1) << 2 | (len - 1) as u8
}

/// Writes a run, unless it is empty. One with a rank must not be longer than [`VAL_MAX_LEN`].
fn put_run(out: &mut Vec<u8>, rank: u8, len: usize) {
    match len {
        0 => {}
        _ if rank > 0 => out.push(val(rank, len)),
        1..=ZERO_MAX_LEN => out.push((len - 1) as u8),
        _ => out.extend_from_slice(&[0x40 | ((len - 1) >> 8) as u8, (len - 1) as u8]),
    }
}

/// The runs for people: `z` and `Z` for ZERO and XZERO with their length, `v` for VAL with rank
/// and length.
pub(super) fn describe(body: &[u8]) -> Result<String, HllError> {
    let mut text = String::new();
    for run in checked_runs(body)? {
        let space = if text.is_empty() { "" } else { " " };
        let Run { rank, len, width } = run;
        // Writing to a string cannot fail.
        let _ = match (rank, width) {
            (0, 1) => write!(text, "{space}z:{len}"),
            (0, _) => write!(text, "{space}Z:{len}"),
            _ => write!(text, "{space}v:{rank},{len}"),
        };
    }
    Ok(text)
}
