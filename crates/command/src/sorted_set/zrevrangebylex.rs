//! ZREVRANGEBYLEX: members in a range of bytes, last first.

use super::bounds::By;
use super::rangeof::{self, Fixed};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the members of a sorted set, whose scores are all the same, in a range of bytes, the
    /// last first.
    ZREVRANGEBYLEX = run: "zrevrangebylex", syntax "key max min [LIMIT offset count]", arity -4,
    group SortedSet, since "2.8.9", flags READONLY,
    complexity "O(log(N) + M) with N members in the set and M in the reply", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let fixed = Fixed {
        by: Some(By::Lex),
        back: Some(true),
        ..Fixed::default()
    };
    rangeof::run(ctx, &args, reply, fixed)
}

#[cfg(test)]
crate::testing::transcripts! {
    the_greater_bound_comes_first: "
        ZADD z 0 a 0 b 0 c => :3
        ZREVRANGEBYLEX z + (a => *2 'c' 'b'
        ZREVRANGEBYLEX z - + => *0
    "
}
