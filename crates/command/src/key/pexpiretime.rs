//! PEXPIRETIME: when a key expires, in milliseconds of Unix time.

use super::ttl::deadline;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the Unix time in milliseconds at which a key expires.
    PEXPIRETIME = run: "pexpiretime", syntax "key", arity 2, group Generic, since "7.0.0",
    flags READONLY | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    deadline(ctx, &args, reply, |at, _| at);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    to_the_millisecond: "
        PEXPIRETIME k => :-2
        SET k v => +OK
        PEXPIRETIME k => :-1
        PEXPIREAT k 1700000001499 => :1
        PEXPIRETIME k => :1700000001499
    "
}
