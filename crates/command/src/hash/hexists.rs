//! HEXISTS: whether a field is there.

use super::read;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Tells whether a field is in a hash.
    HEXISTS = run: "hexists", syntax "key field", arity 3, group Hash, since "2.0.0",
    flags READONLY | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let found = read(ctx, args.get(1))?.is_some_and(|hash| hash.contains(args.get(2)));
    reply.integer(i64::from(found));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    one_or_zero: "
        HEXISTS k a => :0
        HSET k a b => :1
        HEXISTS k a => :1
        HEXISTS k b => :0
    "
}
