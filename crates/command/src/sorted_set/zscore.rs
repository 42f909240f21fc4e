//! ZSCORE: the score of a member.

use super::reply::score;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::sorted_set::SortedSet;

command! {
    /// Returns the score of a member of a sorted set.
    ZSCORE = run: "zscore", syntax "key member", arity 3, group SortedSet, since "1.2.0",
    flags READONLY | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let view = ctx.shard.collection::<SortedSet>(ctx.db, key, ctx.now)?;
    match view.and_then(|view| view.score(args.get(2))) {
        Some(found) => score(reply, found),
        None => reply.null(),
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    a_score_or_nil: "
        ZSCORE z a => $-1
        ZADD z 0.1 a -inf b 1e300 c 12345678901 d -0 e => :5
        ZSCORE z a => '0.1'
        ZSCORE z b => '-inf'
        ZSCORE z c => '1e+300'
        ZSCORE z d => '12345678901'
        ZSCORE z e => '0'
        ZSCORE z none => $-1
        resp3: ZSCORE z a => ,0.1
        SET s x => +OK
        ZSCORE s a => -WRONGTYPE Operation against a key holding the wrong kind of value
    "
}
