//! BAG.SUM: the sum of all numbers, rounded once.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::bag::Op;

command! {
    /// Returns the sum of the numbers in a summary bag, exact but for being rounded once.
    SUM = run: "bag.sum", syntax "key", arity 2, group Claret, since "7.2.0",
    flags READONLY | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    super::answer(ctx, &args, &Op::Sum, reply)
}

#[cfg(test)]
crate::testing::transcripts! {
    does_not_depend_on_the_order: "
        BAG.SUM k => '0'
        BAG.ADD k 1e300 1 -1e300 => +OK
        BAG.ADD l 1e300 -1e300 => +OK
        BAG.ADD l 1 => +OK
        BAG.SUM k => '1'
        BAG.SUM l => '1'
        resp3: BAG.SUM l => ,1
    "
}
