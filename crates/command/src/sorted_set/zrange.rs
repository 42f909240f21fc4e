//! ZRANGE: a part of a sorted set, by position, score or bytes.

use super::rangeof::{self, Fixed};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns a part of a sorted set: by position, by score, or by the bytes of members.
    ZRANGE = run: "zrange",
    syntax "key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]", arity -4,
    group SortedSet, since "1.2.0", flags READONLY,
    complexity "O(log(N) + M) with N members in the set and M in the reply", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let fixed = Fixed { ..Fixed::default() };
    rangeof::run(ctx, &args, reply, fixed)
}

#[cfg(test)]
crate::testing::transcripts! {
    by_position: "
        ZRANGE z 0 -1 => *0
        ZADD z 1 a 2 b 3 c => :3
        ZRANGE z 0 -1 => *3 'a' 'b' 'c'
        ZRANGE z -2 1 => *1 'b'
        ZRANGE z 0 0 REV WITHSCORES => *2 'c' '3'
        ZRANGE z 2 1 => *0
        resp3: ZRANGE z 0 1 WITHSCORES => *2 *2 'a' ,1 *2 'b' ,2
    "

    by_score_and_by_bytes: "
        ZADD z 1 a 2 b 3 c 4 d => :4
        ZRANGE z (1 3 BYSCORE => *2 'b' 'c'
        ZRANGE z +inf 2 BYSCORE REV LIMIT 1 1 => *1 'c'
        ZRANGE z 2 +inf BYSCORE REV => *0
        ZRANGE z 1 4 BYSCORE LIMIT -1 2 => *0
        ZRANGE z 1 4 BYSCORE LIMIT 3 -5 => *1 'd'
        ZADD l 0 a 0 b 0 c => :3
        ZRANGE l [b + BYLEX => *2 'b' 'c'
        ZRANGE l (c - BYLEX REV LIMIT 0 1 => *1 'b'
    "

    refusals: "
        ZRANGE z 0 1 LIMIT 0 1 => -ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
        ZRANGE z - + BYLEX WITHSCORES => -ERR syntax error, WITHSCORES not supported in combination with BYLEX
        ZRANGE z a b => -ERR value is not an integer or out of range
        ZRANGE z a b BYSCORE => -ERR min or max is not a float
        ZRANGE z a b BYLEX => -ERR min or max not valid string range item
        ZRANGE z 0 1 LIMIT 0 => -ERR syntax error
        ZRANGE z 0 1 MORE => -ERR syntax error
    "
}
