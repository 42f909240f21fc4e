//! BAG.MEAN: the mean of all numbers.

use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;
use rufous_datatype::bag::Op;

pub static MEAN: Command = Command {
    spec: Spec {
        name: "bag.mean",
        summary: "Returns the mean of the numbers in a summary bag, exact but for being rounded once; null of an empty one.",
        since: "7.2.0",
        group: Group::Claret,
        complexity: "O(1)",
        arity: 2,
        flags: Flags::READONLY.or(Flags::FAST),
        keys: Keys::FIRST,
        syntax: "key",
    },
    run,
};

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
