//! TTL: how long a key still lives, in seconds.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::expire;

command! {
    /// Returns the remaining time to live of a key, in seconds.
    TTL = run: "ttl", syntax "key", arity 2, group Generic, since "1.0.0", flags READONLY | FAST,
    complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    deadline(ctx, &args, reply, expire::remaining_seconds);
    Ok(())
}

/// Replies what `answer` makes of the key's deadline and the time, both in
/// Unix milliseconds: -1 where the key does not expire, -2 where there is none.
pub(super) fn deadline(
    ctx: &mut Ctx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    answer: impl FnOnce(i64, i64) -> i64,
) {
    let key = ctx.first_key(args.get(1));
    reply.integer(match ctx.shard.expire_at(ctx.db, key, ctx.now) {
        None => -2,
        Some(None) => -1,
        Some(Some(at)) => answer(
            i64::try_from(at).unwrap_or(i64::MAX),
            ctx.time_ms(key) as i64,
        ),
    });
}

#[cfg(test)]
crate::testing::transcripts! {
    to_the_nearest_second: "
        TTL k => :-2
        SET k v => +OK
        TTL k => :-1
        PEXPIRE k 1499 => :1
        TTL k => :1
        PEXPIRE k 1500 => :1
        TTL k => :2
        after 1501 ms: TTL k => :-2
    "
}
