//! DECR: subtracts one from a number.

use super::counter;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Subtracts one from the integer at a key; a missing key counts as 0.
    DECR = run: "decr", syntax "key", arity 2, group String, since "1.0.0",
    flags WRITE | DENYOOM | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    counter::add(ctx, args.get(1), -1, reply)
}

#[cfg(test)]
crate::testing::transcripts! {
    counts_down_to_the_least_integer: "
        DECR n => :-1
        SET n 10 => +OK
        DECR n => :9
        GET n => '9'
        SET n -9223372036854775808 => +OK
        DECR n => -ERR increment or decrement would overflow
    "
}
