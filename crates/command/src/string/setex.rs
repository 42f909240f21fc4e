//! SETEX: gives a key a value and a time to live in seconds.

use super::set::{ExpiryUnit, new_value};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_kernel::shard::ExpirySetting;

command! {
    /// Sets the string at a key together with its time to live in seconds.
    SETEX = run: "setex", syntax "key seconds value", arity 4, group String, since "2.0.0",
    flags WRITE | DENYOOM, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    set_expiring(ctx, args, reply, ExpiryUnit::SECONDS, "setex")
}

/// SETEX and PSETEX: the time comes before the value.
pub(super) fn set_expiring(
    ctx: &mut Ctx<'_>,
    mut args: Args<'_>,
    reply: &mut Reply<'_>,
    unit: ExpiryUnit,
    command: &str,
) -> Result<(), Failure> {
    let now_ms = ctx.time_ms(ctx.first_key(args.get(1)));
    let at = unit.expire_at(args.get(2), now_ms, command)?;
    let big = args.take_big(3);
    let key = ctx.first_key(args.get(1));
    let value = new_value(big, args.get(3));
    ctx.shard
        .set(ctx.db, key, value, ExpirySetting::At(at), ctx.now);
    reply.ok();
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    lives_as_long_as_told: "
        SETEX k 2 v => +OK
        after 1999 ms: GET k => 'v'
        SETEX k 2 w => +OK
        after 1999 ms: GET k => 'w'
        after 1 ms: GET k => $-1
    "

    refuses_times_that_are_none: "
        SETEX k 0 v => -ERR invalid expire time in 'setex' command
        SETEX k -1 v => -ERR invalid expire time in 'setex' command
        SETEX k 9223372036854776 v => -ERR invalid expire time in 'setex' command
        SETEX k x v => -ERR value is not an integer or out of range
        GET k => $-1
    "
}
