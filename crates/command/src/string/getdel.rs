//! GETDEL: returns a value and removes its key.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the string at a key and removes the key.
    GETDEL = run: "getdel", syntax "key", arity 2, group String, since "6.2.0", flags WRITE | FAST,
    complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    match ctx.shard.peek(ctx.db, key, ctx.now)? {
        Some(value) => reply.value(value),
        None => {
            reply.null();
            return Ok(());
        }
    }
    ctx.shard.remove(ctx.db, key, ctx.now);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    reads_once: "
        SET k v => +OK
        GETDEL k => 'v'
        GETDEL k => $-1
        GET k => $-1
        SET k v PX 5 => +OK
        after 5 ms: GETDEL k => $-1
    "
}
