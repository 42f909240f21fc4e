//! ZINTERCARD: how many members several sets have in common.

use crate::{Ctx, Failure, Reply, command};
use rufous_base::Args;

command! {
    /// Returns how many members several sorted sets have in common.
    ZINTERCARD = run: "zintercard", syntax "numkeys key [key ...] [LIMIT limit]", arity -3,
    group SortedSet, since "7.0.0", flags READONLY | MOVABLE_KEYS,
    complexity "O(N K) with N members in the smallest of K sets", keys super::numbered::KEYS,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    super::algebra::count_common(ctx, &args, reply)
}

#[cfg(test)]
crate::testing::transcripts! {
    counts_up_to_a_limit: "
        ZADD a 1 x 2 y 3 z => :3
        ZADD b 1 x 2 y 3 z 4 w => :4
        ZINTERCARD 2 a b => :3
        ZINTERCARD 2 a b LIMIT 2 => :2
        ZINTERCARD 2 a b LIMIT 0 => :3
        ZINTERCARD 2 a none => :0
        ZINTERCARD 1 a LIMIT -1 => -ERR LIMIT can't be negative
        ZINTERCARD 1 a LIMIT => -ERR syntax error
    "
}
