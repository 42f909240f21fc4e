//! INCRBYFLOAT: adds to a number that need not be whole.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::float;
use rufous_kernel::shard::strings;
use rufous_kernel::shard::{ExpirySetting, NewValue, Value};

command! {
    /// Adds a floating-point number to the number at a key; a missing key counts as 0.
    INCRBYFLOAT = run: "incrbyfloat", syntax "key increment", arity 3, group String, since "2.6.0",
    flags WRITE | DENYOOM | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let added = strings::increment_float(&mut ctx.shard.at(ctx.db, key, ctx.now), args.get(2));
    if let Some(sum) = added {
        reply.bulk(&sum?);
        return Ok(());
    }
    let old = ctx.shard.peek(ctx.db, key, ctx.now)?.map(Value::bytes);
    let sum = float::increment(old, args.get(2))?;
    reply.bulk(&sum);
    let value = NewValue::Copy(&sum);
    ctx.shard
        .set(ctx.db, key, value, ExpirySetting::Keep, ctx.now);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    adds_without_the_noise_of_doubles: "
        INCRBYFLOAT k 0.1 => '0.1'
        INCRBYFLOAT k 0.2 => '0.3'
        INCRBYFLOAT k -0.3 => '0'
        INCRBYFLOAT k 5.0e3 => '5000'
        // 64 bits of mantissa are not enough for this one.
        INCRBYFLOAT k 0.3 => '5000.29999999999999982'
        GET k => '5000.29999999999999982'
    "

    keeps_the_expiry: "
        SET k 1 PX 10 => +OK
        INCRBYFLOAT k 1.5 => '2.5'
        after 10 ms: GET k => $-1
    "

    refusals: "
        INCRBYFLOAT k x => -ERR value is not a valid float
        INCRBYFLOAT k nan => -ERR value is not a valid float
        INCRBYFLOAT k '' => -ERR value is not a valid float
        GET k => $-1
        SET k x => +OK
        INCRBYFLOAT k 1 => -ERR value is not a valid float
        SET k 1 => +OK
        INCRBYFLOAT k inf => -ERR increment would produce NaN or Infinity
        GET k => '1'
    "
}
