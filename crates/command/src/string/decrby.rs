//! DECRBY: subtracts from a number.

use super::counter;
use crate::options::integer;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::integer::negate_decrement;

command! {
    /// Subtracts an integer from the integer at a key; a missing key counts as 0.
    DECRBY = run: "decrby", syntax "key decrement", arity 3, group String, since "1.0.0",
    flags WRITE | DENYOOM | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let by = negate_decrement(integer(args.get(2))?)?;
    counter::add(ctx, args.get(1), by, reply)
}

#[cfg(test)]
crate::testing::transcripts! {
    subtracts_what_can_be_negated: "
        DECRBY n 5 => :-5
        DECRBY n -15 => :10
        DECRBY n -9223372036854775808 => -ERR decrement would overflow
        DECRBY n 9223372036854775807 => :-9223372036854775797
        DECRBY n 100 => -ERR increment or decrement would overflow
        DECRBY n x => -ERR value is not an integer or out of range
    "
}
