//! ZRANGEBYLEX: members in a range of bytes.

use super::bounds::By;
use super::rangeof::{self, Fixed};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the members of a sorted set, whose scores are all the same, in a range of bytes.
    ZRANGEBYLEX = run: "zrangebylex", syntax "key min max [LIMIT offset count]", arity -4,
    group SortedSet, since "2.8.9", flags READONLY,
    complexity "O(log(N) + M) with N members in the set and M in the reply", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let fixed = Fixed {
        by: Some(By::Lex),
        back: Some(false),
        ..Fixed::default()
    };
    rangeof::run(ctx, &args, reply, fixed)
}

#[cfg(test)]
crate::testing::transcripts! {
    between_members: "
        ZADD z 0 a 0 aa 0 b 0 c => :4
        ZRANGEBYLEX z [a (b => *2 'a' 'aa'
        ZRANGEBYLEX z (a + LIMIT 1 1 => *1 'b'
    "

    only_members_count_where_scores_differ: "
        ZADD z 0 c 1 b 2 a => :3
        ZRANGEBYLEX z [b + => *2 'c' 'b'
        ZRANGEBYLEX z [b + LIMIT 1 9 => *1 'b'
    "
}
