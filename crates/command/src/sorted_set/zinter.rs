//! ZINTER: the members that several sets have in common.

use super::algebra::{Operation, read};
use crate::{Ctx, Failure, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the intersection of several sorted sets.
    ZINTER = run: "zinter",
    syntax "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]",
    arity -3, group SortedSet, since "6.2.0", flags READONLY | MOVABLE_KEYS,
    complexity "O(N K) + O(M log(M)) with N members in the smallest of K sets and M in the result",
    keys super::numbered::KEYS,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    read(ctx, &args, reply, ("zinter", Operation::Inter))
}

#[cfg(test)]
crate::testing::transcripts! {
    common_members: "
        ZADD a 1 x 2 y 5 z => :3
        ZADD b 3 y 4 z => :2
        ZINTER 2 a b WITHSCORES => *4 'y' '5' 'z' '9'
        ZINTER 2 a b WEIGHTS 0 -1 => *2 'z' 'y'
        ZINTER 2 a none => *0
    "
}
