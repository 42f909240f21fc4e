//! RANK.POSITION: the rank of a member.

use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;
pub static POSITION: Command = Command {
    spec: Spec {
        name: "rank.position",
        summary: "Returns how many members of a ranking are higher than this one; null where it is none.",
        since: "7.2.0",
        group: Group::Claret,
        complexity: "O(log(k))",
        arity: 3,
        flags: Flags::READONLY.or(Flags::FAST),
        keys: Keys::FIRST,
        syntax: "key member",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    match super::ranking(ctx, &args)?.and_then(|ranking| ranking.position(args.get(2))) {
        Some(rank) => reply.count(rank),
        None => reply.null(),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn counts_from_the_highest() {
        let mut rig = Rig::new();
        rig.check("RANK.POSITION k a", "$-1\r\n");
        rig.check("RANK.ADD k 5 1 a 2 b", "+OK\r\n");
        rig.check("RANK.POSITION k a", ":1\r\n");
        rig.check("RANK.POSITION k b", ":0\r\n");
        rig.check("RANK.POSITION k c", "$-1\r\n");
    }
}
