//! PERSIST: lets a key live for ever.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Removes the expiry of a key.
    PERSIST = run: "persist", syntax "key", arity 2, group Generic, since "2.2.0",
    flags WRITE | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let expires = matches!(ctx.shard.expire_at(ctx.db, key, ctx.now), Some(Some(_)));
    if expires {
        ctx.shard.set_expire_at(ctx.db, key, None, ctx.now);
    }
    reply.integer(i64::from(expires));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    tells_whether_there_was_an_expiry: "
        PERSIST k => :0
        SET k v PX 100 => +OK
        PERSIST k => :1
        PERSIST k => :0
        after 200 ms: GET k => 'v'
        TTL k => :-1
    "
}
