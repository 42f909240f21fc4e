//! RANK.POSITION: the rank of a member.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
command! {
    /// Returns how many members of a ranking are higher than this one; null where it is none.
    POSITION = run: "rank.position", syntax "key member", arity 3, group Claret, since "7.2.0",
    flags READONLY | FAST, complexity "O(log(k))", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    match super::ranking(ctx, &args)?.and_then(|ranking| ranking.position(args.get(2))) {
        Some(rank) => reply.count(rank),
        None => reply.null(),
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    counts_from_the_highest: "
        RANK.POSITION k a => $-1
        RANK.ADD k 5 1 a 2 b => +OK
        RANK.POSITION k a => :1
        RANK.POSITION k b => :0
        RANK.POSITION k c => $-1
    "
}
