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
mod tests {
    use crate::testing::Rig;

    #[test]
    fn duplicates_count() {
        let mut rig = Rig::new();
        rig.check("BAG.COUNT k", ":0\r\n");
        rig.check("BAG.ADD k 1 1", "+OK\r\n");
        rig.check("BAG.ADD k 1", "+OK\r\n");
        rig.check("BAG.COUNT k", ":3\r\n");
    }
}
