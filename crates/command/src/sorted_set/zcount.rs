//! ZCOUNT: how many members have scores in a range.

use super::bounds::scores;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::sorted_set::SortedSet;

command! {
    /// Returns how many members of a sorted set have scores between two.
    ZCOUNT = run: "zcount", syntax "key min max", arity 4, group SortedSet, since "2.0.0",
    flags READONLY | FAST, complexity "O(log(N)) with N members in the set", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let zone = scores(args.get(2), args.get(3))?;
    let key = ctx.first_key(args.get(1));
    let view = ctx.shard.collection::<SortedSet>(ctx.db, key, ctx.now)?;
    reply.count(view.map_or(0, |view| view.span(&zone).len()));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    counts_between_scores: "
        ZADD z 1 a 2 b 2 c 3 d inf e => :5
        ZCOUNT z 2 3 => :3
        ZCOUNT z (2 3 => :1
        ZCOUNT z -inf (inf => :4
        ZCOUNT z 3 2 => :0
        ZCOUNT none 1 2 => :0
        ZCOUNT z x 2 => -ERR min or max is not a float
        ZCOUNT z 1 nan => -ERR min or max is not a float
    "
}
