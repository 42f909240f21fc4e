//! ZREMRANGEBYRANK: removes members by position.

use super::bounds::By;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Removes the members of a sorted set by position and tells how many there were.
    ZREMRANGEBYRANK = run: "zremrangebyrank", syntax "key start stop", arity 4, group SortedSet,
    since "2.0.0", flags WRITE, complexity "O(log(N) + M) with N members in the set and M removed",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    super::remrange::run(ctx, &args, reply, By::Rank)
}

#[cfg(test)]
crate::testing::transcripts! {
    by_position: "
        ZADD z 1 a 2 b 3 c 4 d => :4
        ZREMRANGEBYRANK z 5 9 => :0
        ZREMRANGEBYRANK z 1 -2 => :2
        ZRANGE z 0 -1 => *2 'a' 'd'
        ZREMRANGEBYRANK z 0 -1 => :2
        EXISTS z => :0
        ZREMRANGEBYRANK z 0 -1 => :0
    "

    large_sets: "
        for {n} in 0..300: ZADD z {n} m{n} => :1
        ZREMRANGEBYRANK z 1 -2 => :298
        ZRANGE z 0 -1 => *2 'm0' 'm299'
        ZSCORE z m5 => $-1
        ZREMRANGEBYRANK z 0 -1 => :2
        EXISTS z => :0
    "
}
