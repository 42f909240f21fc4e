//! GET: the value of a key.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the string at a key.
    GET = run: "get", syntax "key", arity 2, group String, since "1.0.0", flags READONLY | FAST,
    complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    match ctx.shard.get(ctx.db, key, ctx.now)? {
        Some(value) => reply.value(value),
        None => reply.null(),
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    a_value_or_nil: "
        GET k => $-1
        SET k v => +OK
        GET k => 'v'
        resp3: GET none => _
    "
}
