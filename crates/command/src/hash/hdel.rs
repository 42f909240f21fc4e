//! HDEL: removes fields.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::hash::{Hash, Op};

command! {
    /// Removes fields of a hash, and the key with the last; answers how many were there.
    HDEL = run: "hdel", syntax "key field [field ...]", arity -3, group Hash, since "2.0.0",
    flags WRITE | FAST, complexity "O(N) with N fields", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let gone = ctx.shard.update::<Hash, _>(ctx.db, key, ctx.now, |hash| {
        let delete = |field: &&[u8]| hash.apply(&Op::Delete { field }).is_true();
        args.iter_from(2).filter(delete).count()
    })?;
    reply.count(gone);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    counts_what_was_there: "
        HDEL k a => :0
        HSET k a 1 b 2 c 3 => :3
        HDEL k a x a 1 => :1
        HLEN k => :2
        HDEL k b c => :2
        EXISTS k => :0
    "
}
