//! EXPIRETIME: when a key expires, in seconds of Unix time.

use super::ttl::deadline;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::expire;

command! {
    /// Returns the Unix time in seconds at which a key expires.
    EXPIRETIME = run: "expiretime", syntax "key", arity 2, group Generic, since "7.0.0",
    flags READONLY | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    deadline(ctx, &args, reply, |at, _| expire::to_seconds(at));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    to_the_nearest_second: "
        EXPIRETIME k => :-2
        SET k v => +OK
        EXPIRETIME k => :-1
        PEXPIREAT k 1700000001499 => :1
        EXPIRETIME k => :1700000001
        PEXPIREAT k 1700000001500 => :1
        EXPIRETIME k => :1700000002
    "
}
