//! ZINTERSTORE: what several sets have in common as the value of a key.

use super::algebra::{Operation, store};
use crate::{Ctx, Failure, Reply, command};
use rufous_base::Args;

command! {
    /// Stores the intersection of several sorted sets and returns how many members it has.
    ZINTERSTORE = run: "zinterstore",
    syntax "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX]",
    arity -4, group SortedSet, since "2.0.0", flags WRITE | DENYOOM | MOVABLE_KEYS,
    complexity "O(N K) + O(M log(M)) with N members in the smallest of K sets and M in the result",
    keys super::numbered::TARGET_AND_KEYS,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    store(ctx, &args, reply, ("zinterstore", Operation::Inter))
}

#[cfg(test)]
crate::testing::transcripts! {
    stores_common_members: "
        ZADD a 1 x 2 y => :2
        ZADD b 5 y => :1
        ZINTERSTORE d 2 a b AGGREGATE min => :1
        ZRANGE d 0 -1 WITHSCORES => *2 'y' '2'
    "
}
