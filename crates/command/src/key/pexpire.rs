//! PEXPIRE: gives a key a time to live in milliseconds.

use super::expire::set_deadline;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::expire::{ExpireBase, ExpireUnit};

command! {
    /// Gives a key a time to live in milliseconds.
    PEXPIRE = run: "pexpire", syntax "key milliseconds [NX | XX | GT | LT]", arity -3,
    group Generic, since "2.6.0", flags WRITE | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let time = (ExpireUnit::Milliseconds, ExpireBase::Relative);
    set_deadline(ctx, &args, reply, time, "pexpire")
}

#[cfg(test)]
crate::testing::transcripts! {
    a_key_lives_so_many_milliseconds: "
        SET k v => +OK
        PEXPIRE k 1500 => :1
        PTTL k => :1500
        PEXPIRE k 2000 LT => :0
        PEXPIRE k 9223372036854775807 => -ERR invalid expire time in 'pexpire' command
        PEXPIRE k -9223372036854775808 => :1
        EXISTS k => :0
    "
}
