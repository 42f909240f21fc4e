//! RENAMENX: gives a key another name, unless that is taken.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Renames a key only if the new name is not in use.
    RENAMENX = run: "renamenx", syntax "key newkey", arity 3, group Generic, since "1.0.0",
    flags WRITE | FAST, complexity "O(1)", keys Keys::FIRST_TWO,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let (from, to) = (ctx.first_key(args.get(1)), ctx.key(args.get(2)));
    if !ctx.shard.contains(ctx.db, from, ctx.now) {
        return Err(Failure::NO_SUCH_KEY);
    }
    let free = !ctx.shard.contains(ctx.db, to, ctx.now);
    if free {
        ctx.shard.rename((ctx.db, from), (ctx.db, to), ctx.now);
    }
    reply.integer(i64::from(free));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    only_to_a_free_name: "
        RENAMENX a b => -ERR no such key
        SET a 1 PX 1000 => +OK
        SET b 2 PX 5 => +OK
        RENAMENX a b => :0
        RENAMENX a a => :0
        after 10 ms: RENAMENX a b => :1
        GET b => '1'
        PTTL b => :990
        EXISTS a => :0
    "
}
