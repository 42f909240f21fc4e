//! BZMPOP: takes members from the first of several sorted sets that there is, or waits for some.

use super::zmpop::Plan;
use crate::blocking::timeout;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Takes the members with the lowest or highest scores from the first sorted set that has some;
    /// waits where none has.
    BZMPOP = run: "bzmpop", syntax "timeout numkeys key [key ...] <MIN | MAX> [COUNT count]",
    arity -5, group SortedSet, since "7.0.0", flags WRITE | BLOCKING | MOVABLE_KEYS | OF_EACH | TIMEOUT_FIRST,
    complexity "O(K) + O(log(N) + M) with K keys, N members in the set and M taken",
    keys Keys::Custom {
        find,
        shown: (0, 0, 0),
    },
}

fn find(args: &Args<'_>, db: u8, keys: &mut Vec<(u8, u32)>) {
    if let Ok(plan) = Plan::parse(args, 2) {
        keys.extend(plan.keys.map(|at| (db, at as u32)));
    }
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let plan = Plan::parse(&args, 2)?;
    let timeout_us = timeout(ctx, args.get(1))?;
    if !plan.run(ctx, &args, reply)? {
        reply.null_array();
        ctx.wait(plan.keys, timeout_us);
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    as_zmpop_where_there_is_something: "
        ZADD z 1 a => :1
        BZMPOP 0 2 none z MIN => *2 'z' *1 *2 'a' '1'
        BZMPOP 0 1 z MAX => *-1
        BZMPOP x 1 z UP => -ERR syntax error
    "
}
