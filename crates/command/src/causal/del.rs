//! CAUSAL.DEL: deletes what a token has seen.

use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;

pub static DEL: Command = Command {
    spec: Spec {
        name: "causal.del",
        summary: "Deletes those values of a key that the token has seen; others stay. Returns 1 if there were any.",
        since: "7.2.0",
        group: Group::String,
        complexity: "O(N) where N is the number of concurrent values",
        arity: 3,
        flags: Flags::WRITE.or(Flags::FAST),
        keys: Keys::FIRST,
        syntax: "key token",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let written = super::write(ctx, key, args.get(2), None)?;
    reply.integer(i64::from(written.removed));
    Ok(())
}
