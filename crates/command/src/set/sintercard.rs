//! SINTERCARD: how many are in all of several sets.

use super::combine::{intersect, sets};
use crate::options::is;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::integer;
use std::ops::ControlFlow;

command! {
    /// Returns how many members are in all of several sets, counting no further than the limit.
    SINTERCARD = run: "sintercard", syntax "numkeys key [key ...] [LIMIT limit]", arity -3,
    group Set, since "7.0.0", flags READONLY | MOVABLE_KEYS | SLOW,
    complexity "O(N * M) with N members of the smallest set and M sets", keys Keys::Custom {
        find,
        shown: (0, 0, 0),
    },
}

/// Of a request that cannot run, any keys will do.
fn find(args: &Args<'_>, db: u8, keys: &mut Vec<(u8, u32)>) {
    let count = number(args.get(1)).unwrap_or(0).min(args.len() - 2);
    keys.extend((2..2 + count).map(|at| (db, at as u32)));
}

fn number(arg: &[u8]) -> Option<usize> {
    integer::parse_i64(arg).and_then(|n| usize::try_from(n).ok())
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let count = number(args.get(1)).filter(|count| *count > 0);
    let count = count.ok_or(Failure::from("ERR numkeys should be greater than 0"))?;
    if count > args.len() - 2 {
        return Err("ERR Number of keys can't be greater than number of args".into());
    }
    let (mut limit, mut at) = (0, 2 + count);
    while at < args.len() {
        if !is(args.get(at), "LIMIT") || at + 1 == args.len() {
            return Err(Failure::SYNTAX);
        }
        let given = number(args.get(at + 1));
        limit = given.ok_or(Failure::from("ERR LIMIT can't be negative"))?;
        at += 2;
    }
    let sets = sets(ctx, args.iter_from(2).take(count))?;
    let mut found = 0;
    intersect(&sets, |_| {
        found += 1;
        if found == limit {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    reply.count(found);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    counts_up_to_the_limit: "
        SADD a x y z => :3
        SADD b z y x w => :4
        SINTERCARD 2 a b => :3
        SINTERCARD 1 b => :4
        SINTERCARD 3 a b none => :0
        SINTERCARD 2 a b LIMIT 2 => :2
        SINTERCARD 2 a b limit 0 => :3
        SINTERCARD 2 a b LIMIT 9 => :3
    "

    refusals: "
        SINTERCARD 0 a => -ERR numkeys should be greater than 0
        SINTERCARD -1 a => -ERR numkeys should be greater than 0
        SINTERCARD x a => -ERR numkeys should be greater than 0
        SINTERCARD 2 a => -ERR Number of keys can't be greater than number of args
        SINTERCARD 9223372036854775807 a => -ERR Number of keys can't be greater than number of args
        SINTERCARD 1 a LIMIT => -ERR syntax error
        SINTERCARD 1 a b => -ERR syntax error
        SINTERCARD 1 a LIMIT -1 => -ERR LIMIT can't be negative
        SINTERCARD 1 a LIMIT x => -ERR LIMIT can't be negative
    "
}
