//! CAUSAL.GET: all concurrent values of a key, and a token for having seen them.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::replicated::token;
use rufous_kernel::shard::causal;

command! {
    /// Returns a token for what is seen of a key, and its concurrent values, the latest first.
    GET = run: "causal.get", syntax "key", arity 2, group String, since "7.2.0",
    flags READONLY | FAST, complexity "O(N) where N is the number of concurrent values",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    super::check(ctx, key)?;
    let values = causal::see(&mut ctx.shard.at(ctx.db, key, ctx.now));
    reply.array(1 + values.live().count());
    reply.bulk(&token::encode(
        ctx.db as u8,
        key.bytes,
        &values.seen().clone().into(),
    ));
    for sibling in values.live() {
        reply.bulk(&sibling.text());
    }
    Ok(())
}
