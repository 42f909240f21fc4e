//! SMISMEMBER: which of several things are members of a set.

use super::read;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Tells of each of several things whether it is a member of a set.
    SMISMEMBER = run: "smismember", syntax "key member [member ...]", arity -3, group Set,
    since "6.2.0", flags READONLY | FAST, complexity "O(N) with N members asked for",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let set = read(ctx, args.get(1))?;
    reply.array(args.len() - 2);
    for member in args.iter_from(2) {
        let found = set.is_some_and(|set| set.contains(member));
        reply.integer(i64::from(found));
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    one_or_zero_for_each: "
        SMISMEMBER k a b => *2 :0 :0
        SADD k a => :1
        SMISMEMBER k b a a => *3 :0 :1 :1
    "
}
