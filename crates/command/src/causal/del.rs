//! CAUSAL.DEL: deletes what a token has seen.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Deletes those values of a key that the token has seen; others stay. Returns 1 if there were
    /// any.
    DEL = run: "causal.del", syntax "key token", arity 3, group String, since "7.2.0",
    flags WRITE | FAST, complexity "O(N) where N is the number of concurrent values",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let written = super::write(ctx, key, args.get(2), None)?;
    reply.integer(i64::from(written.removed));
    Ok(())
}
