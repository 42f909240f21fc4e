//! SUNIONSTORE: keeps what is in any of several sets.

use super::combine::{sets, store, union};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Stores the members of several sets, each once; answers how many.
    SUNIONSTORE = run: "sunionstore", syntax "destination key [key ...]", arity -3, group Set,
    since "1.0.0", flags WRITE | DENYOOM | SLOW,
    complexity "O(N) with N members of all sets but the largest", keys Keys::ALL,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let sets = sets(ctx, args.iter_from(2))?;
    let all = union(sets, ctx.shard.tuning());
    store(ctx, args.get(1), all, reply);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    replaces_or_removes_the_destination: "
        SADD a x y => :2
        SADD b y z => :2
        SUNIONSTORE a a b => :3
        SMISMEMBER a x y z w => *4 :1 :1 :1 :0
        SUNIONSTORE a none nothing => :0
        EXISTS a => :0
    "

    a_copy_of_a_large_one_is_another: "
        for {n} in 0..3000: SADD a {n} => :1
        SADD b 1 x => :2
        SUNIONSTORE c b a => :3001
        SREM c 1 2 3 => :3
        SCARD a => :3000
        SCARD c => :2998
    "
}
