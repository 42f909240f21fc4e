//! PTTL: how long a key still lives, in milliseconds.

use super::ttl::deadline;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::expire;

command! {
    /// Returns the remaining time to live of a key, in milliseconds.
    PTTL = run: "pttl", syntax "key", arity 2, group Generic, since "2.6.0", flags READONLY | FAST,
    complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    deadline(ctx, &args, reply, expire::remaining_ms);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    to_the_millisecond: "
        PTTL k => :-2
        SET k v => +OK
        PTTL k => :-1
        PEXPIRE k 1499 => :1
        after 99 ms: PTTL k => :1400
    "
}
