//! DEL: removes keys.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Removes keys and tells how many there were.
    DEL = run: "del", syntax "key [key ...]", arity -2, group Generic, since "1.0.0", flags WRITE | PER_KEY | SUM | OF_EACH,
    complexity "O(N) where N is the number of keys", keys Keys::ALL,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    remove(ctx, &args, reply);
    Ok(())
}

/// Removes every key named and replies how many were there. A value that is
/// large enough to matter is freed elsewhere, so DEL and UNLINK are one.
pub(super) fn remove(ctx: &mut Ctx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) {
    let mut removed = 0;
    for (index, name) in args.iter_from(1).enumerate() {
        let key = if index == 0 {
            ctx.first_key(name)
        } else {
            ctx.key(name)
        };
        removed += usize::from(ctx.shard.remove(ctx.db, key, ctx.now));
    }
    reply.count(removed);
}

#[cfg(test)]
crate::testing::transcripts! {
    counts_the_keys_that_were_there: "
        SET a 1 => +OK
        SET b 2 => +OK
        DEL a none b a => :2
        GET a => $-1
        DEL b => :0
    "

    a_key_whose_time_has_come_was_not_there: "
        SET a 1 PX 5 => +OK
        after 10 ms: DEL a => :0
    "
}
