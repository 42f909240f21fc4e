//! ZDIFF: the members of a set that others do not have.

use super::algebra::{Operation, read};
use crate::{Ctx, Failure, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the members of the first sorted set that are in none of the others.
    ZDIFF = run: "zdiff", syntax "numkeys key [key ...] [WITHSCORES]", arity -3, group SortedSet,
    since "6.2.0", flags READONLY | MOVABLE_KEYS,
    complexity "O(N K) + O(M log(M)) with N members in the first of K sets and M in the result",
    keys super::numbered::KEYS,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    read(ctx, &args, reply, ("zdiff", Operation::Diff))
}

#[cfg(test)]
crate::testing::transcripts! {
    what_others_do_not_have: "
        ZADD a 1 x 2 y 5 z => :3
        ZADD b 3 y 4 z => :2
        ZDIFF 2 a b WITHSCORES => *2 'x' '1'
        ZDIFF 2 b a => *0
        ZDIFF 1 a WEIGHTS 2 => -ERR syntax error
    "
}
