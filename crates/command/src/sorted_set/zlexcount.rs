//! ZLEXCOUNT: how many members are in a range of bytes.

use super::bounds::{Bounds, By, Limit};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::sorted_set::SortedSet;

command! {
    /// Returns how many members of a sorted set, whose scores are all the same, are in a range of
    /// bytes.
    ZLEXCOUNT = run: "zlexcount", syntax "key min max", arity 4, group SortedSet, since "2.8.9",
    flags READONLY | FAST,
    complexity "O(log(N)) with N members in the set, O(N) where scores differ", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let bounds = Bounds::parse(By::Lex, args.get(2), args.get(3))?;
    let key = ctx.first_key(args.get(1));
    let view = ctx.shard.collection::<SortedSet>(ctx.db, key, ctx.now)?;
    let count = view.map_or(0, |view| bounds.select(view, false, Limit::NONE).len());
    reply.count(count);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    counts_between_members: "
        ZADD z 0 a 0 b 0 bb 0 c => :4
        ZLEXCOUNT z - + => :4
        ZLEXCOUNT z [b (c => :2
        ZLEXCOUNT z (b [c => :2
        ZLEXCOUNT z + - => :0
        ZLEXCOUNT z a b => -ERR min or max not valid string range item
        ZADD z 5 bbb => :1
        ZLEXCOUNT z [b (c => :3
    "
}
