//! RANK.MAX: the first of a ranking.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
command! {
    /// Returns the highest member of a ranking and its score; null where there is none.
    MAX = run: "rank.max", syntax "key", arity 2, group Claret, since "7.2.0",
    flags READONLY | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    match super::ranking(ctx, &args)?.and_then(|ranking| ranking.at(0)) {
        Some((member, score)) => {
            reply.array(2);
            reply.bulk(member);
            reply.double(score);
        }
        None => reply.null_array(),
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    member_and_score: "
        RANK.MAX k => *-1
        RANK.ADD k 3 1 a 2.5 b => +OK
        RANK.MAX k => *2 'b' '2.5'
        resp3: RANK.MAX k => *2 'b' ,2.5
    "
}
