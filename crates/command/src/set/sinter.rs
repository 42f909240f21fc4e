//! SINTER: what is in all of several sets.

use super::combine::{intersect, sets};
use crate::elements::Elements;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use std::ops::ControlFlow;

command! {
    /// Returns the members that are in all of several sets.
    SINTER = run: "sinter", syntax "key [key ...]", arity -2, group Set, since "1.0.0",
    flags READONLY | SLOW, complexity "O(N * M) with N members of the smallest set and M sets",
    keys Keys::ALL,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let sets = sets(ctx, args.iter_from(1))?;
    let mut found = Elements::default();
    intersect(&sets, |member| {
        found.push(member);
        ControlFlow::Continue(())
    });
    reply.set(found.count);
    found.write(reply);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    what_is_in_all: "
        SADD a x y z => :3
        SADD b z y => :2
        SINTER a b => *2 'z' 'y'
        SINTER a b none => *0
        SET s v => +OK
        SINTER none a s => -WRONGTYPE Operation against a key holding the wrong kind of value
        resp3: SINTER a none => ~0
    "
}
