//! BITCOUNT: how many bits are set.

use super::unit;
use crate::options::integer;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::bits::{self, BitUnit};

command! {
    /// Counts the bits that are set in the string at a key, or between two offsets of it.
    BITCOUNT = run: "bitcount", syntax "key [start end [BYTE | BIT]]", arity -2, group Bitmap,
    since "2.6.0", flags READONLY | SLOW, complexity "O(N) with N bytes to read",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    // A missing key is answered before the other arguments are checked.
    let Some(value) = ctx.shard.get(ctx.db, key, ctx.now)? else {
        reply.integer(0);
        return Ok(());
    };
    let count = match args.len() {
        2 => bits::bitcount(value.bytes()),
        4 | 5 => {
            let (start, end) = (integer(args.get(2))?, integer(args.get(3))?);
            // Redis finds this range empty before it looks at the unit.
            if start < 0 && end < 0 && start > end {
                reply.integer(0);
                return Ok(());
            }
            let unit = match args.len() {
                5 => unit(args.get(4))?,
                _ => BitUnit::Byte,
            };
            bits::bitcount_range(value.bytes(), start, end, unit)
        }
        _ => return Err(Failure::SYNTAX),
    };
    reply.integer(count as i64);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    all_or_a_part: "
        SET k foobar => +OK
        BITCOUNT k => :26
        BITCOUNT k 0 0 => :4
        BITCOUNT k 1 1 byte => :6
        BITCOUNT k 5 30 BIT => :17
        BITCOUNT k -1 -3 => :0
        BITCOUNT none => :0
    "

    refusals: "
        SET k foobar => +OK
        BITCOUNT k 0 => -ERR syntax error
        BITCOUNT k 0 1 word => -ERR syntax error
        BITCOUNT k 0 1 BIT x => -ERR syntax error
        BITCOUNT k 0 x => -ERR value is not an integer or out of range
        BITCOUNT none 0 x => :0
        BITCOUNT k -1 -2 word => :0
        BITCOUNT k -2 -1 word => -ERR syntax error
    "
}
