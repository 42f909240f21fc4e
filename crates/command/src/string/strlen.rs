//! STRLEN: how long a value is.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Tells the length of the string at a key in bytes; 0 for a missing key.
    STRLEN = run: "strlen", syntax "key", arity 2, group String, since "2.2.0",
    flags READONLY | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let value = ctx.shard.get(ctx.db, key, ctx.now)?;
    reply.count(value.map_or(0, |value| value.bytes().len()));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    counts_bytes: "
        STRLEN k => :0
        SET k éa => +OK
        STRLEN k => :3
        SET k '' => +OK
        STRLEN k => :0
    "
}
