//! CAUSAL.SET: writes a value in the place of what a token has seen.

use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;
use rufous_datatype::replicated::token;

pub static SET: Command = Command {
    spec: Spec {
        name: "causal.set",
        summary: "Sets a key in the place of those of its values that the token has seen; others stay beside it. Returns the token of who has written.",
        since: "7.2.0",
        group: Group::String,
        complexity: "O(N) where N is the number of concurrent values",
        arity: 4,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
        keys: Keys::FIRST,
        syntax: "key token value",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let written = super::write(ctx, key, args.get(2), Some(args.get(3)))?;
    reply.bulk(&token::encode(ctx.db as u8, key.bytes, &written.seen));
    Ok(())
}
