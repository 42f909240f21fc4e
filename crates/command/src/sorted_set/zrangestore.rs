//! ZRANGESTORE: a part of a sorted set as the value of another key.

use super::rangeof::{self, Fixed};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Stores a part of a sorted set at another key and returns how many members it has.
    ZRANGESTORE = run: "zrangestore",
    syntax "dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]", arity -5,
    group SortedSet, since "6.2.0", flags WRITE | DENYOOM,
    complexity "O(log(N) + M log(M)) with N members in the set and M in the range",
    keys Keys::FIRST_TWO,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let fixed = Fixed {
        store: true,
        ..Fixed::default()
    };
    rangeof::store(ctx, &args, reply, fixed)
}

#[cfg(test)]
crate::testing::transcripts! {
    stores_or_removes: "
        ZADD z 1 a 2 b 3 c => :3
        SET d x => +OK
        ZRANGESTORE d z 0 0 REV => :1
        ZRANGE d 0 -1 WITHSCORES => *2 'c' '3'
        ZRANGESTORE z z 2 inf BYSCORE LIMIT 0 1 => :1
        ZRANGE z 0 -1 => *1 'b'
        ZRANGESTORE d none 0 -1 => :0
        EXISTS d => :0
        ZRANGESTORE d z 0 1 WITHSCORES => -ERR syntax error
    "
}
