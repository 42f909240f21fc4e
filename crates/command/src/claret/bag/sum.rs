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
mod tests {
    use crate::testing::Rig;

    #[test]
    fn does_not_depend_on_the_order() {
        let mut rig = Rig::new();
        rig.check("BAG.SUM k", "$1\r\n0\r\n");
        rig.check("BAG.ADD k 1e300 1 -1e300", "+OK\r\n");
        rig.check("BAG.ADD l 1e300 -1e300", "+OK\r\n");
        rig.check("BAG.ADD l 1", "+OK\r\n");
        rig.check("BAG.SUM k", "$1\r\n1\r\n");
        rig.check("BAG.SUM l", "$1\r\n1\r\n");
        rig.resp3().check("BAG.SUM l", ",1\r\n");
    }
}
