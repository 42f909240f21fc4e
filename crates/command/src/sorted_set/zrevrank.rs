//! ZREVRANK: how many members come after one.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the position of a member of a sorted set, counted from the highest score.
    ZREVRANK = run: "zrevrank", syntax "key member [WITHSCORE]", arity -3, group SortedSet,
    since "2.0.0", flags READONLY | FAST, complexity "O(log(N)) with N members in the set",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    super::zrank::answer(ctx, &args, reply, true)
}

#[cfg(test)]
crate::testing::transcripts! {
    positions_from_the_highest: "
        for {n} in 0..200: ZADD z {n} m{n} => :1
        ZREVRANK z m199 => :0
        ZREVRANK z m10 WITHSCORE => *2 :189 '10'
    "
}
