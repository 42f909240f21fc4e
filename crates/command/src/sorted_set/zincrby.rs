//! ZINCRBY: adds to the score of a member.

use super::zadd::{increment, score_of};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::sorted_set::Only;

command! {
    /// Adds to the score of a member of a sorted set; one that is not there begins at 0.
    ZINCRBY = run: "zincrby", syntax "key increment member", arity 4, group SortedSet,
    since "1.2.0", flags WRITE | DENYOOM | FAST, complexity "O(log(N)) with N members in the set",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let by = score_of(args.get(2))?;
    increment(ctx, args.get(1), (args.get(3), by, Only::default()), reply)
}

#[cfg(test)]
crate::testing::transcripts! {
    adds_to_a_score: "
        ZINCRBY z 2 a => '2'
        ZINCRBY z -3.5 a => '-1.5'
        ZINCRBY z x a => -ERR value is not a valid float
        resp3: ZINCRBY z 1 a => ,-0.5
        ZINCRBY z -inf a => ,-inf
        ZINCRBY z inf a => -ERR resulting score is not a number (NaN)
        ZSCORE z a => ,-inf
    "
}
