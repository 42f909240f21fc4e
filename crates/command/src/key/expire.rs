//! EXPIRE: gives a key a time to live in seconds.

use crate::options;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::expire::{
    self, ExpireBase, ExpireCondition, ExpireOutcome, ExpireTime, ExpireUnit,
};

command! {
    /// Gives a key a time to live in seconds.
    EXPIRE = run: "expire", syntax "key seconds [NX | XX | GT | LT]", arity -3, group Generic,
    since "1.0.0", flags WRITE | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let time = (ExpireUnit::Seconds, ExpireBase::Relative);
    set_deadline(ctx, &args, reply, time, "expire")
}

/// EXPIRE and its variants: an argument in `unit`, counted from `base`, and
/// conditions behind it.
pub(super) fn set_deadline(
    ctx: &mut Ctx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    (unit, base): (ExpireUnit, ExpireBase),
    command: &'static str,
) -> Result<(), Failure> {
    let mut condition = ExpireCondition::default();
    for option in args.iter_from(3) {
        if !condition.add_option(option) {
            let shown = String::from_utf8_lossy(&option[..option.len().min(128)]);
            return Err(Failure::from(format!("ERR Unsupported option {shown}")));
        }
    }
    condition.check()?;
    let value = options::integer(args.get(2))?;
    let key = ctx.first_key(args.get(1));
    let now_ms = ctx.time_ms(key) as i64;
    let deadline = ExpireTime { value, unit, base }.deadline_ms(now_ms, command)?;
    let Some(current) = ctx.shard.expire_at(ctx.db, key, ctx.now) else {
        reply.integer(0);
        return Ok(());
    };
    let current = current.map(|at| i64::try_from(at).unwrap_or(i64::MAX));
    let changed = match expire::decide(condition, current, deadline, now_ms) {
        ExpireOutcome::Unchanged => false,
        ExpireOutcome::Delete => ctx.shard.remove(ctx.db, key, ctx.now),
        ExpireOutcome::Set(at) => {
            let at = u64::try_from(at).unwrap_or_default();
            ctx.shard.set_expire_at(ctx.db, key, Some(at), ctx.now)
        }
    };
    reply.integer(i64::from(changed));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    a_key_lives_so_many_seconds: "
        EXPIRE k 10 => :0
        SET k v => +OK
        EXPIRE k 10 => :1
        PTTL k => :10000
        after 9999 ms: GET k => 'v'
        after 2 ms: GET k => $-1
    "

    conditions: "
        SET k v => +OK
        EXPIRE k 10 XX => :0
        EXPIRE k 10 GT => :0
        EXPIRE k 10 nx => :1
        EXPIRE k 20 NX => :0
        EXPIRE k 5 GT => :0
        EXPIRE k 15 GT XX => :1
        EXPIRE k 20 LT => :0
        EXPIRE k 5 LT LT => :1
        TTL k => :5
        EXPIRE k -1 GT => :0
        EXISTS k => :1
    "

    the_past_deletes: "
        SET k v => +OK
        EXPIRE k 0 => :1
        EXISTS k => :0
        SET k v => +OK
        EXPIRE k -1 => :1
        EXISTS k => :0
        SET k v => +OK
        EXPIRE k -1000000000000 => :1
        EXISTS k => :0
    "

    refused: "
        SET k v => +OK
        EXPIRE k 9223372036854775807 => -ERR invalid expire time in 'expire' command
        EXPIRE none 9223372036854775807 => -ERR invalid expire time in 'expire' command
        EXPIRE k -9223372036854775808 => -ERR invalid expire time in 'expire' command
        EXPIRE k 9223372036854775 => -ERR invalid expire time in 'expire' command
        EXPIRE k x => -ERR value is not an integer or out of range
        EXPIRE k x foo => -ERR Unsupported option foo
        EXPIRE k 10 NX XX => -ERR NX and XX, GT or LT options at the same time are not compatible
        EXPIRE k 10 GT NX => -ERR NX and XX, GT or LT options at the same time are not compatible
        EXPIRE k x LT GT => -ERR GT and LT options at the same time are not compatible
        TTL k => :-1
    "
}
