//! LLEN: how long a list is.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the length of a list, 0 where it is missing.
    LLEN = run: "llen", syntax "key", arity 2, group List, since "1.0.0", flags READONLY | FAST,
    complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let view = super::read(ctx, args.get(1))?;
    reply.count(view.map_or(0, |view| view.len()));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    of_lists_and_nothing_else: "
        LLEN k => :0
        RPUSH k a b => :2
        LLEN k => :2
        SET s v => +OK
        LLEN s => -WRONGTYPE Operation against a key holding the wrong kind of value
    "
}
