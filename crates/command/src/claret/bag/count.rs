//! BAG.COUNT: how many numbers were added.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::bag::Op;

command! {
    /// Returns how many numbers were added to a summary bag.
    COUNT = run: "bag.count", syntax "key", arity 2, group Claret, since "7.2.0",
    flags READONLY | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    super::answer(ctx, &args, &Op::Count, reply)
}

#[cfg(test)]
crate::testing::transcripts! {
    duplicates_count: "
        BAG.COUNT k => :0
        BAG.ADD k 1 1 => +OK
        BAG.ADD k 1 => +OK
        BAG.COUNT k => :3
    "
}
