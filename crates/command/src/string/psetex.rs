//! PSETEX: gives a key a value and a time to live in milliseconds.

use super::set::ExpiryUnit;
use super::setex::set_expiring;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Sets the string at a key together with its time to live in milliseconds.
    PSETEX = run: "psetex", syntax "key milliseconds value", arity 4, group String, since "2.6.0",
    flags WRITE | DENYOOM, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    set_expiring(ctx, args, reply, ExpiryUnit::MILLISECONDS, "psetex")
}

#[cfg(test)]
crate::testing::transcripts! {
    lives_as_long_as_told: "
        PSETEX k 20 v => +OK
        after 19 ms: GET k => 'v'
        PSETEX k 20 w => +OK
        after 19 ms: GET k => 'w'
        after 1 ms: GET k => $-1
    "

    refuses_times_that_are_none: "
        PSETEX k 0 v => -ERR invalid expire time in 'psetex' command
        PSETEX k -1 v => -ERR invalid expire time in 'psetex' command
        PSETEX k 9223372036854775807 v => -ERR invalid expire time in 'psetex' command
        PSETEX k x v => -ERR value is not an integer or out of range
        GET k => $-1
    "
}
