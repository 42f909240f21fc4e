//! BLMPOP: takes elements of the first of several lists that there is, or waits for some.

use super::lmpop::Request;
use super::pop_many;
use crate::blocking::timeout;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Takes elements from one end of the first list that has some; waits where none has.
    BLMPOP = run: "blmpop", syntax "timeout numkeys key [key ...] <LEFT | RIGHT> [COUNT count]",
    arity -5, group List, since "7.0.0",
    flags WRITE | BLOCKING | MOVABLE_KEYS | OF_EACH | TIMEOUT_FIRST,
    complexity "O(N+M) where N is the number of keys and M the number of elements taken",
    keys Keys::Custom {
        find,
        shown: (0, 0, 0),
    },
}

fn find(args: &Args<'_>, db: u8, keys: &mut Vec<(u8, u32)>) {
    if let Ok(request) = Request::parse(args, 2) {
        keys.extend((request.first..request.end).map(|at| (db, at as u32)));
    }
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let request = Request::parse(&args, 2)?;
    let timeout_us = timeout(ctx, args.get(1))?;
    let keys = request.first..request.end;
    let start = reply.out.mark();
    for at in keys.clone() {
        let key = ctx.key(args.get(at));
        reply.array(2);
        reply.bulk(key.bytes);
        if pop_many(ctx, key, request.from, request.count, reply)? {
            return Ok(());
        }
        reply.out.truncate(start);
    }
    reply.null_array();
    ctx.wait(keys, timeout_us);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    as_lmpop_where_there_is_something: "
        RPUSH k 1 2 3 => :3
        BLMPOP 0 2 none k RIGHT COUNT 2 => *2 'k' *2 '3' '2'
        BLMPOP 0 1 none LEFT => *-1
    "

    refusals_in_their_order: "
        BLMPOP -1 0 k LEFT => -ERR numkeys should be greater than 0
        BLMPOP x 1 k UP => -ERR syntax error
        BLMPOP 0 2 k LEFT => -ERR syntax error
        BLMPOP 0 1 k LEFT COUNT 0 => -ERR count should be greater than 0
        BLMPOP x 1 k LEFT => -ERR timeout is not a float or out of range
    "
}
