//! SISMEMBER: whether something is a member of a set.

use super::read;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Tells whether something is a member of a set.
    SISMEMBER = run: "sismember", syntax "key member", arity 3, group Set, since "1.0.0",
    flags READONLY | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let found = read(ctx, args.get(1))?.is_some_and(|set| set.contains(args.get(2)));
    reply.integer(i64::from(found));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    one_or_zero: "
        SISMEMBER k a => :0
        SADD k a => :1
        SISMEMBER k a => :1
        SISMEMBER k b => :0
    "
}
