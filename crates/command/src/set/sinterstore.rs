//! SINTERSTORE: keeps what is in all of several sets.

use super::combine::{intersect, sets, store};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::algebra::Algebra;
use rufous_datatype::set::{Op, Set};
use std::ops::ControlFlow;

command! {
    /// Stores the members that are in all of several sets; answers how many.
    SINTERSTORE = run: "sinterstore", syntax "destination key [key ...]", arity -3, group Set,
    since "1.0.0", flags WRITE | DENYOOM | SLOW,
    complexity "O(N * M) with N members of the smallest set and M sets", keys Keys::ALL,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let sets = sets(ctx, args.iter_from(2))?;
    let (mut common, tuning) = (Set::empty(), ctx.shard.tuning());
    intersect(&sets, |member| {
        Set::commit(&mut common, &Op::Add { member }, tuning);
        ControlFlow::Continue(())
    });
    store(ctx, args.get(1), common, reply);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    replaces_or_removes_the_destination: "
        SADD a x y z => :3
        SADD b z y => :2
        SINTERSTORE a a b => :2
        SMISMEMBER a x y z => *3 :0 :1 :1
        SINTERSTORE a a none => :0
        EXISTS a => :0
        SET s v => +OK
        SINTERSTORE b none s => -WRONGTYPE Operation against a key holding the wrong kind of value
        SCARD b => :2
    "
}
