//! BAG.MAX: the greatest number.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::bag::Op;

command! {
    /// Returns the greatest number that was added to a summary bag; null of an empty one.
    MAX = run: "bag.max", syntax "key", arity 2, group Claret, since "7.2.0",
    flags READONLY | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    super::answer(ctx, &args, &Op::Max, reply)
}

#[cfg(test)]
crate::testing::transcripts! {
    of_all_that_was_added: "
        BAG.MAX k => $-1
        BAG.ADD k -3 -1.5 -2 => +OK
        BAG.MAX k => '-1.5'
    "
}
