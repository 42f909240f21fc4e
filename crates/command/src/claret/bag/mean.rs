//! BAG.MEAN: the mean of all numbers.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::bag::Op;

command! {
    /// Returns the mean of the numbers in a summary bag, exact but for being rounded once; null of
    /// an empty one.
    MEAN = run: "bag.mean", syntax "key", arity 2, group Claret, since "7.2.0",
    flags READONLY | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    super::answer(ctx, &args, &Op::Mean, reply)
}

#[cfg(test)]
crate::testing::transcripts! {
    of_the_exact_sum: "
        BAG.MEAN k => $-1
        BAG.ADD k 1 2 => +OK
        BAG.MEAN k => '1.5'
        BAG.ADD l 1.7e308 1.7e308 => +OK
        BAG.SUM l => 'inf'
        BAG.MEAN l => '1.7e+308'
    "
}
