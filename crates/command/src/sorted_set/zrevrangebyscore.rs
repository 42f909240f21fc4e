//! ZREVRANGEBYSCORE: members with scores between two, highest first.

use super::bounds::By;
use super::rangeof::{self, Fixed};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the members of a sorted set with scores between two, the highest first.
    ZREVRANGEBYSCORE = run: "zrevrangebyscore",
    syntax "key max min [WITHSCORES] [LIMIT offset count]", arity -4, group SortedSet,
    since "2.2.0", flags READONLY,
    complexity "O(log(N) + M) with N members in the set and M in the reply", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let fixed = Fixed {
        by: Some(By::Score),
        back: Some(true),
        ..Fixed::default()
    };
    rangeof::run(ctx, &args, reply, fixed)
}

#[cfg(test)]
crate::testing::transcripts! {
    the_greater_bound_comes_first: "
        ZADD z 1 a 2 b 3 c => :3
        ZREVRANGEBYSCORE z 3 (1 LIMIT 0 10 => *2 'c' 'b'
        ZREVRANGEBYSCORE z 1 3 => *0
    "
}
