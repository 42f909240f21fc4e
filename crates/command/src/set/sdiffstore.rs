//! SDIFFSTORE: keeps what is in one set and in no other.

use super::combine::{difference, sets, store};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Stores the members of the first set that are in none of the others; answers how many.
    SDIFFSTORE = run: "sdiffstore", syntax "destination key [key ...]", arity -3, group Set,
    since "1.0.0", flags WRITE | DENYOOM | SLOW,
    complexity "O(N) with N members of the first set or of all others, whichever is less",
    keys Keys::ALL,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let sets = sets(ctx, args.iter_from(2))?;
    let left = difference(sets, ctx.shard.tuning());
    store(ctx, args.get(1), left, reply);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    replaces_or_removes_the_destination: "
        SADD a x y z => :3
        SADD b y 1 2 3 => :4
        SET d v PX 10 => +OK
        SDIFFSTORE d a b => :2
        after 10 ms: SMISMEMBER d x y z => *3 :1 :0 :1
        SDIFFSTORE b b a => :3
        SMISMEMBER b y 1 2 3 => *4 :0 :1 :1 :1
        SDIFFSTORE a a none a => :0
        EXISTS a => :0
    "

    a_little_from_a_large_one: "
        for {n} in 0..3000: SADD a {n} => :1
        SADD b 5 6 3000 => :3
        SDIFFSTORE d a b => :2998
        SCARD a => :3000
        SDIFFSTORE b d a => :0
        SDIFFSTORE b a d => :2
    "
}
