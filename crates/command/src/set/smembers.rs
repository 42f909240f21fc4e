//! SMEMBERS: all members of a set.

use super::read;
use crate::made::{self, All, Form};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::set::Set;

command! {
    /// Returns all members of a set.
    SMEMBERS = run: "smembers", syntax "key", arity 2, group Set, since "1.0.0", flags READONLY,
    complexity "O(N) with N members", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let Some(set) = read(ctx, args.get(1))? else {
        reply.set(0);
        return Ok(());
    };
    reply.set(set.len());
    made::write::<Set>(set, All::of(set, Form::Name), reply);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    all_of_them: "
        SMEMBERS k => *0
        SADD k b a => :2
        SMEMBERS k => *2 'b' 'a'
        resp3: SMEMBERS k => ~2 'b' 'a'
    "
}
