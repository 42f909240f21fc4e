//! HSCAN: fields with their values, some at a time.

use super::read;
use crate::elements::{Elements, Scan};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns some fields of a hash with their values, and a cursor to go on with.
    HSCAN = run: "hscan", syntax "key cursor [MATCH pattern] [COUNT count]", arity -3, group Hash,
    since "2.8.0", flags READONLY, complexity "O(1) for every call, O(N) for all N fields",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let cursor = Scan::cursor(args.get(2))?;
    let mut found = Elements::default();
    let Some(hash) = read(ctx, args.get(1))? else {
        Scan::reply(0, &found, reply);
        return Ok(());
    };
    let scan = Scan::parse(&args)?;
    let next = hash.scan(cursor, scan.count, &mut |field, value| {
        if scan.shows(field) {
            found.push(field);
            found.push(value);
        }
    });
    Scan::reply(next, &found, reply);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    a_small_hash_at_once: "
        HSCAN k 0 => *2 '0' *0
        HSET k ab 1 b 2 => :2
        HSCAN k 0 COUNT 1 MATCH a? => *2 '0' *2 'ab' '1'
        HSCAN k 0 NOVALUES => -ERR syntax error
        HSCAN k -1 => -ERR invalid cursor
    "
}
