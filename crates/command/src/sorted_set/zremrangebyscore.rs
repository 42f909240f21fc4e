//! ZREMRANGEBYSCORE: removes members with scores between two.

use super::bounds::By;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Removes the members of a sorted set with scores between two and tells how many there were.
    ZREMRANGEBYSCORE = run: "zremrangebyscore", syntax "key min max", arity 4, group SortedSet,
    since "1.2.0", flags WRITE, complexity "O(log(N) + M) with N members in the set and M removed",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    super::remrange::run(ctx, &args, reply, By::Score)
}

#[cfg(test)]
crate::testing::transcripts! {
    between_scores: "
        ZADD z 1 a 2 b 3 c 4 d => :4
        ZREMRANGEBYSCORE z (1 3 => :2
        ZREMRANGEBYSCORE z 3 1 => :0
        ZREMRANGEBYSCORE z x 1 => -ERR min or max is not a float
        ZREMRANGEBYSCORE z -inf +inf => :2
        EXISTS z => :0
    "
}
