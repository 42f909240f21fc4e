//! INCRBY: adds to a number.

use super::counter;
use crate::options::integer;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Adds an integer to the integer at a key; a missing key counts as 0.
    INCRBY = run: "incrby", syntax "key increment", arity 3, group String, since "1.0.0",
    flags WRITE | DENYOOM | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    counter::add(ctx, args.get(1), integer(args.get(2))?, reply)
}

#[cfg(test)]
crate::testing::transcripts! {
    adds_any_integer: "
        INCRBY n 9223372036854775807 => :9223372036854775807
        INCRBY n 1 => -ERR increment or decrement would overflow
        INCRBY n -9223372036854775808 => :-1
        INCRBY n 0 => :-1
        INCRBY n 1.0 => -ERR value is not an integer or out of range
        INCRBY none x => -ERR value is not an integer or out of range
        GET none => $-1
    "
}
