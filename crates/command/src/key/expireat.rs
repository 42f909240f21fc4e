//! EXPIREAT: sets when a key expires, in seconds of Unix time.

use super::expire::set_deadline;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::expire::{ExpireBase, ExpireUnit};

command! {
    /// Sets when a key expires, in seconds of Unix time.
    EXPIREAT = run: "expireat", syntax "key unix-time-seconds [NX | XX | GT | LT]", arity -3,
    group Generic, since "1.2.0", flags WRITE | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let time = (ExpireUnit::Seconds, ExpireBase::Absolute);
    set_deadline(ctx, &args, reply, time, "expireat")
}

#[cfg(test)]
crate::testing::transcripts! {
    a_key_lives_until_then: "
        SET k v => +OK
        EXPIREAT k 1700000010 => :1
        PTTL k => :10000
        EXPIREAT k 1700000005 GT => :0
        EXPIREAT k 99999999999999999 => -ERR invalid expire time in 'expireat' command
        EXPIREAT k 1700000000 => :1
        EXISTS k => :0
    "
}
