//! PEXPIREAT: sets when a key expires, in milliseconds of Unix time.

use super::expire::set_deadline;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::expire::{ExpireBase, ExpireUnit};

command! {
    /// Sets when a key expires, in milliseconds of Unix time.
    PEXPIREAT = run: "pexpireat", syntax "key unix-time-milliseconds [NX | XX | GT | LT]",
    arity -3, group Generic, since "2.6.0", flags WRITE | FAST, complexity "O(1)",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let time = (ExpireUnit::Milliseconds, ExpireBase::Absolute);
    set_deadline(ctx, &args, reply, time, "pexpireat")
}

#[cfg(test)]
crate::testing::transcripts! {
    a_key_lives_until_then: "
        SET k v => +OK
        PEXPIREAT k 1700000000001 => :1
        PTTL k => :1
        PEXPIREAT k 9223372036854775807 => :1
        PEXPIRETIME k => :9223372036854775807
        PEXPIREAT k 1700000000000 => :1
        EXISTS k => :0
        PEXPIREAT k x => -ERR value is not an integer or out of range
    "
}
