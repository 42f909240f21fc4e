//! ZRANGEBYSCORE: members with scores between two.

use super::bounds::By;
use super::rangeof::{self, Fixed};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the members of a sorted set with scores between two.
    ZRANGEBYSCORE = run: "zrangebyscore", syntax "key min max [WITHSCORES] [LIMIT offset count]",
    arity -4, group SortedSet, since "1.0.5", flags READONLY,
    complexity "O(log(N) + M) with N members in the set and M in the reply", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let fixed = Fixed {
        by: Some(By::Score),
        back: Some(false),
        ..Fixed::default()
    };
    rangeof::run(ctx, &args, reply, fixed)
}

#[cfg(test)]
crate::testing::transcripts! {
    between_scores: "
        ZADD z 1 a 2 b 3 c => :3
        ZRANGEBYSCORE z -inf (3 WITHSCORES LIMIT 1 5 => *2 'b' '2'
        ZRANGEBYSCORE z 1 2 BYSCORE => -ERR syntax error
        ZRANGEBYSCORE z 1 2 LIMIT a 1 => -ERR value is not an integer or out of range
    "
}
