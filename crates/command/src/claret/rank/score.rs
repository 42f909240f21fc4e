//! RANK.SCORE: the score of a member.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
command! {
    /// Returns the score of a member of a ranking; null where it is none.
    SCORE = run: "rank.score", syntax "key member", arity 3, group Claret, since "7.2.0",
    flags READONLY | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    match super::ranking(ctx, &args)?.and_then(|ranking| ranking.score(args.get(2))) {
        Some(score) => reply.double(score),
        None => reply.null(),
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    null_of_others: "
        RANK.SCORE k a => $-1
        RANK.ADD k 1 1 a 2 b => +OK
        RANK.SCORE k a => $-1
        RANK.SCORE k b => '2'
    "
}
