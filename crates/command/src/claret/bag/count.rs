//! BAG.COUNT: how many numbers were added.

use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;
use rufous_datatype::bag::Op;

pub static COUNT: Command = Command {
    spec: Spec {
        name: "bag.count",
        summary: "Returns how many numbers were added to a summary bag.",
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
