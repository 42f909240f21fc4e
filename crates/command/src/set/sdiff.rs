//! SDIFF: what is in one set and in no other.

use super::combine::{sets, subtract};
use crate::elements::Elements;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the members of the first set that are in none of the others.
    SDIFF = run: "sdiff", syntax "key [key ...]", arity -2, group Set, since "1.0.0",
    flags READONLY | SLOW, complexity "O(N * M) with N members of the first set and M other sets",
    keys Keys::ALL,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let sets = sets(ctx, args.iter_from(1))?;
    let mut found = Elements::default();
    subtract(&sets, |member| found.push(member));
    reply.set(found.count);
    found.write(reply);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    the_first_without_the_others: "
        SADD a x y z => :3
        SADD b y => :1
        SDIFF a b none b => *2 'x' 'z'
        SDIFF none a => *0
        SDIFF a a => *0
        SET s v => +OK
        SDIFF none a s => -WRONGTYPE Operation against a key holding the wrong kind of value
        resp3: SDIFF b => ~1 'y'
    "
}
