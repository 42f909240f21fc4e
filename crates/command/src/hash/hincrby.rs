//! HINCRBY: adds to the integer in a field.

use crate::options;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::hash::{self, Hash, Op};

command! {
    /// Adds to the integer in a field of a hash; a missing field counts as 0.
    HINCRBY = run: "hincrby", syntax "key field increment", arity 4, group Hash, since "2.0.0",
    flags WRITE | DENYOOM | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let by = options::integer(args.get(3))?;
    let (key, field) = (ctx.first_key(args.get(1)), args.get(2));
    let sum = ctx.shard.update::<Hash, _>(ctx.db, key, ctx.now, |hash| {
        hash.apply(&Op::Increment { field, by })
    })?;
    if let hash::Reply::Integer(sum) = sum {
        reply.integer(sum?);
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    counts: "
        HINCRBY k a 5 => :5
        HINCRBY k a -7 => :-2
        HGET k a => '-2'
        HINCRBY k a 9223372036854775807 => :9223372036854775805
        HINCRBY k a 3 => -ERR increment or decrement would overflow
    "

    refusals: "
        HINCRBY k a x => -ERR value is not an integer or out of range
        EXISTS k => :0
        HSET k a 01 => :1
        HINCRBY k a 1 => -ERR hash value is not an integer
        HGET k a => '01'
        SET s v => +OK
        HINCRBY s a 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
    "
}
