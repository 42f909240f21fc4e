//! Commands that say how many keys they name.

use crate::options::integer;
use crate::{Failure, Keys};
use rufous_base::Args;
use std::ops::Range;

/// Where the keys stand whose number is argument `number`; nothing if that is
/// no such number.
fn keys_after(args: &Args<'_>, number: usize) -> Option<Range<usize>> {
    let count = usize::try_from(integer(args.get(number)).ok()?).ok()?;
    let first = number + 1;
    let room = args.len().checked_sub(first)?;
    (count >= 1 && count <= room).then(|| first..first + count)
}

fn push(args: &Args<'_>, number: usize, db: u8, keys: &mut Vec<(u8, u32)>) {
    let found = keys_after(args, number).unwrap_or(0..0);
    keys.extend(found.map(|at| (db, at as u32)));
}

/// `command numkeys key [key ...]`.
pub(crate) const KEYS: Keys = Keys::Custom {
    find: |args, db, keys| push(args, 1, db, keys),
    shown: (0, 0, 0),
};

/// `command destination numkeys key [key ...]`.
pub(crate) const TARGET_AND_KEYS: Keys = Keys::Custom {
    find: |args, db, keys| {
        keys.push((db, 1));
        push(args, 2, db, keys);
    },
    shown: (1, 1, 1),
};

/// The keys of a request, with Redis's words for what is wrong with their number.
pub(crate) fn keys(args: &Args<'_>, number: usize, command: &str) -> Result<Range<usize>, Failure> {
    if integer(args.get(number))? < 1 {
        return Err(Failure(
            format!("ERR at least 1 input key is needed for '{command}' command").into(),
        ));
    }
    keys_after(args, number).ok_or(Failure::SYNTAX)
}
