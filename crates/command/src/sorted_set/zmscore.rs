//! ZMSCORE: the scores of several members.

use super::reply::score;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::sorted_set::SortedSet;

command! {
    /// Returns the scores of several members of a sorted set.
    ZMSCORE = run: "zmscore", syntax "key member [member ...]", arity -3, group SortedSet,
    since "6.2.0", flags READONLY | FAST, complexity "O(N) with N members asked for",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let view = ctx.shard.collection::<SortedSet>(ctx.db, key, ctx.now)?;
    reply.array(args.len() - 2);
    for member in args.iter_from(2) {
        match view.and_then(|view| view.score(member)) {
            Some(found) => score(reply, found),
            None => reply.null(),
        }
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    scores_and_nils: "
        ZMSCORE z a b => *2 $-1 $-1
        ZADD z 1 a 2.5 b => :2
        ZMSCORE z b none a => *3 '2.5' $-1 '1'
    "
}
