//! SETNX: gives a key a value if it has none.

use super::set::new_value;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_kernel::shard::ExpirySetting;

command! {
    /// Sets the string at a key if there is no such key yet.
    SETNX = run: "setnx", syntax "key value", arity 3, group String, since "1.0.0",
    flags WRITE | DENYOOM | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, mut args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let big = args.take_big(2);
    let key = ctx.first_key(args.get(1));
    let absent = !ctx.shard.contains(ctx.db, key, ctx.now);
    if absent {
        let value = new_value(big, args.get(2));
        ctx.shard
            .set(ctx.db, key, value, ExpirySetting::Clear, ctx.now);
    }
    reply.integer(absent.into());
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    only_the_first_wins: "
        SETNX k a => :1
        SETNX k b => :0
        GET k => 'a'
        SET k c PX 5 => +OK
        after 5 ms: SETNX k d => :1
        after 5 ms: GET k => 'd'
    "
}
