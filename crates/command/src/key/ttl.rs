//! TTL: how long a key still lives, in seconds.

use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;
use rufous_datatype::expire;

pub static TTL: Command = Command {
    spec: Spec {
        name: "ttl",
        summary: "Returns the remaining time to live of a key, in seconds.",
        since: "1.0.0",
        group: Group::Generic,
        complexity: "O(1)",
        arity: 2,
        flags: Flags::READONLY.or(Flags::FAST),
        keys: Keys::FIRST,
        syntax: "key",
    },
    run,
};

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
            ctx.now.unix_ms() as i64,
        ),
    });
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn to_the_nearest_second() {
        let mut rig = Rig::new();
        rig.check("TTL k", ":-2\r\n");
        rig.check("SET k v", "+OK\r\n");
        rig.check("TTL k", ":-1\r\n");
        rig.check("PEXPIRE k 1499", ":1\r\n");
        rig.check("TTL k", ":1\r\n");
        rig.check("PEXPIRE k 1500", ":1\r\n");
        rig.check("TTL k", ":2\r\n");
        rig.advance_ms(1501).check("TTL k", ":-2\r\n");
    }
}
