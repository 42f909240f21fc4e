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
mod tests {
    use crate::testing::Rig;

    #[test]
    fn of_the_exact_sum() {
        let mut rig = Rig::new();
        rig.check("BAG.MEAN k", "$-1\r\n");
        rig.check("BAG.ADD k 1 2", "+OK\r\n");
        rig.check("BAG.MEAN k", "$3\r\n1.5\r\n");
        rig.check("BAG.ADD l 1.7e308 1.7e308", "+OK\r\n");
        rig.check("BAG.SUM l", "$3\r\ninf\r\n");
        rig.check("BAG.MEAN l", "$8\r\n1.7e+308\r\n");
    }
}
