//! RANK.LEN: how many members a ranking has.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
command! {
    /// Returns how many members a ranking has.
    LEN = run: "rank.len", syntax "key", arity 2, group Claret, since "7.2.0",
    flags READONLY | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    reply.count(super::ranking(ctx, &args)?.map_or(0, |ranking| ranking.len()));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    never_above_k: "
        RANK.LEN k => :0
        RANK.ADD k 2 1 a 2 b 3 c => +OK
        RANK.LEN k => :2
    "
}
