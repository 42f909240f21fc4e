//! SREM: removes members from a set.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::set::{Op, Set};

command! {
    /// Removes members from a set, and the key with the last; answers how many were there.
    SREM = run: "srem", syntax "key member [member ...]", arity -3, group Set, since "1.0.0",
    flags WRITE | FAST, complexity "O(N) with N members", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let gone = ctx.shard.update::<Set, _>(ctx.db, key, ctx.now, |set| {
        let remove = |member: &&[u8]| set.apply(&Op::Remove { member }).is_true();
        args.iter_from(2).filter(remove).count()
    })?;
    reply.count(gone);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    counts_what_was_there: "
        SREM none a => :0
        SADD k a b c => :3
        SREM k a x a => :1
        SISMEMBER k a => :0
        SREM k b c => :2
        EXISTS k => :0
        SET k v => +OK
        SREM k a => -WRONGTYPE Operation against a key holding the wrong kind of value
    "
}
