//! RANK.LEN: how many members a ranking has.

use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;
pub static LEN: Command = Command {
    spec: Spec {
        name: "rank.len",
        summary: "Returns how many members a ranking has.",
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
    reply.count(super::ranking(ctx, &args)?.map_or(0, |ranking| ranking.len()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn never_above_k() {
        let mut rig = Rig::new();
        rig.check("RANK.LEN k", ":0\r\n");
        rig.check("RANK.ADD k 2 1 a 2 b 3 c", "+OK\r\n");
        rig.check("RANK.LEN k", ":2\r\n");
    }
}
