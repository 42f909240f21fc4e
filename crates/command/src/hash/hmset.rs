//! HMSET: gives fields of a hash their values, as before HSET took several.

use super::hset::set;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Sets fields of a hash, creating it where the key is missing.
    HMSET = run: "hmset", syntax "key field value [field value ...]", arity -4, group Hash,
    since "2.0.0", flags WRITE | DENYOOM | FAST, complexity "O(N) with N fields", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    set(ctx, &args, "hmset")?;
    reply.ok();
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    ok_whatever_is_new: "
        HMSET k a 1 b 2 => +OK
        HMSET k a 3 => +OK
        HGET k a => '3'
        HMSET k a 1 b => -ERR wrong number of arguments for 'hmset' command
    "
}
