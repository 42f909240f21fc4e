//! ZCARD: how many members there are.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::sorted_set::SortedSet;

command! {
    /// Returns how many members a sorted set has.
    ZCARD = run: "zcard", syntax "key", arity 2, group SortedSet, since "1.2.0",
    flags READONLY | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let view = ctx.shard.collection::<SortedSet>(ctx.db, key, ctx.now)?;
    reply.count(view.map_or(0, |view| view.len()));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    counts_members: "
        ZCARD z => :0
        ZADD z 1 a 1 b => :2
        ZCARD z => :2
    "
}
