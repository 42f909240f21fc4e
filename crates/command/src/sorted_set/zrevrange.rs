//! ZREVRANGE: a part of a sorted set by position, from the highest score.

use super::bounds::By;
use super::rangeof::{self, Fixed};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns a part of a sorted set by position, counted from the highest score.
    ZREVRANGE = run: "zrevrange", syntax "key start stop [WITHSCORES]", arity -4, group SortedSet,
    since "1.2.0", flags READONLY,
    complexity "O(log(N) + M) with N members in the set and M in the reply", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let fixed = Fixed {
        by: Some(By::Rank),
        back: Some(true),
        ..Fixed::default()
    };
    rangeof::run(ctx, &args, reply, fixed)
}

#[cfg(test)]
crate::testing::transcripts! {
    counts_from_the_highest: "
        for {n} in 100..400: ZADD z {n} m{n} => :1
        ZREVRANGE z 0 1 => *2 'm399' 'm398'
        ZREVRANGE z -1 -1 WITHSCORES => *2 'm100' '100'
        ZREVRANGE z 0 1 REV => -ERR syntax error
    "
}
