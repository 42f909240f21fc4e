//! SUNION: what is in any of several sets.

use super::combine::{sets, union};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the members of several sets, each once.
    SUNION = run: "sunion", syntax "key [key ...]", arity -2, group Set, since "1.0.0",
    flags READONLY | SLOW, complexity "O(N) with N members of all sets", keys Keys::ALL,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let sets = sets(ctx, args.iter_from(1))?;
    let all = union(sets, ctx.shard.tuning());
    reply.set(all.view().len());
    all.view().each(|member, _| reply.bulk(member));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    each_member_once: "
        SADD a x y => :2
        SADD b y z w => :3
        SUNION a none b a => *4 'y' 'z' 'w' 'x'
        SUNION none => *0
        SCARD b => :3
        SET s v => +OK
        SUNION a s => -WRONGTYPE Operation against a key holding the wrong kind of value
        resp3: SUNION a b => ~4 'y' 'z' 'w' 'x'
    "
}
