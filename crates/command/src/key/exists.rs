//! EXISTS: how many of the keys named are there.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Tells how many of the given keys exist; a key given twice counts twice.
    EXISTS = run: "exists", syntax "key [key ...]", arity -2, group Generic, since "1.0.0",
    flags READONLY | FAST | PER_KEY | SUM, complexity "O(N) where N is the number of keys", keys Keys::ALL,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let mut present = 0;
    for (index, name) in args.iter_from(1).enumerate() {
        let key = if index == 0 {
            ctx.first_key(name)
        } else {
            ctx.key(name)
        };
        present += usize::from(ctx.shard.contains(ctx.db, key, ctx.now));
    }
    reply.count(present);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    repeats_count_and_expired_keys_do_not: "
        SET a 1 => +OK
        SET b 1 PX 5 => +OK
        EXISTS a b a none => :3
        after 10 ms: EXISTS a b a none => :2
        EXISTS none => :0
    "

    asking_is_not_an_access: "
        SET a 1 => +OK
        after 30000 ms: EXISTS a => :1
        object|idletime idletime a => :30
    "
}
