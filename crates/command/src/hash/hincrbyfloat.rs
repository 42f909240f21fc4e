//! HINCRBYFLOAT: adds to the number in a field.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::hash::{self, Hash, Op};

command! {
    /// Adds a floating-point number to the number in a field of a hash; a missing field counts as
    /// 0.
    HINCRBYFLOAT = run: "hincrbyfloat", syntax "key field increment", arity 4, group Hash,
    since "2.6.0", flags WRITE | DENYOOM | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let by = args.get(3);
    // Before the key is accessed.
    hash::finite(by)?;
    let (key, field) = (ctx.first_key(args.get(1)), args.get(2));
    let sum = ctx.shard.update::<Hash, _>(ctx.db, key, ctx.now, |hash| {
        hash.apply(&Op::IncrementFloat { field, by })
    })?;
    if let hash::Reply::Float(sum) = sum {
        reply.bulk(&sum?);
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    adds_without_the_noise_of_doubles: "
        HINCRBYFLOAT k a 10.5 => '10.5'
        HINCRBYFLOAT k a 0.1 => '10.6'
        HINCRBYFLOAT k a -5.6e0 => '5'
        HINCRBY k a 1 => :6
    "

    refusals: "
        SET s v => +OK
        HINCRBYFLOAT s a x => -ERR value is not a valid float
        HINCRBYFLOAT s a inf => -ERR value is NaN or Infinity
        HINCRBYFLOAT s a 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        HSET k a x => :1
        HINCRBYFLOAT k a 1 => -ERR hash value is not a float
        HSET k a 1e4932 => :0
        HINCRBYFLOAT k a 1e4932 => -ERR increment would produce NaN or Infinity
        HGET k a => '1e4932'
    "
}
