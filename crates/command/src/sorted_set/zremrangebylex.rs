//! ZREMRANGEBYLEX: removes members in a range of bytes.

use super::bounds::By;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Removes the members of a sorted set in a range of bytes and tells how many there were.
    ZREMRANGEBYLEX = run: "zremrangebylex", syntax "key min max", arity 4, group SortedSet,
    since "2.8.9", flags WRITE, complexity "O(log(N) + M) with N members in the set and M removed",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    super::remrange::run(ctx, &args, reply, By::Lex)
}

#[cfg(test)]
crate::testing::transcripts! {
    between_members: "
        ZADD z 0 a 0 b 0 c 0 d => :4
        ZREMRANGEBYLEX z (a [c => :2
        ZREMRANGEBYLEX z [x + => :0
        ZADD z 5 b => :1
        ZREMRANGEBYLEX z [b + => :2
        ZRANGE z 0 -1 => *1 'a'
    "
}
