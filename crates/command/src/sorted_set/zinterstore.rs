//! ZINTERSTORE: what several sets have in common as the value of a key.

use super::algebra::{Operation, store};
use crate::{Command, Ctx, Failure, Flags, Group, Reply, Spec};
use rufous_base::Args;

pub static ZINTERSTORE: Command = Command {
    spec: Spec {
        name: "zinterstore",
        summary: "Stores the intersection of several sorted sets and returns how many members it has.",
        since: "2.0.0",
        group: Group::SortedSet,
        complexity: "O(N K) + O(M log(M)) with N members in the smallest of K sets and M in the result",
        arity: -4,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::MOVABLE_KEYS),
        keys: super::numbered::TARGET_AND_KEYS,
        syntax: "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX]",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    store(ctx, &args, reply, ("zinterstore", Operation::Inter))
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn stores_common_members() {
        let mut rig = Rig::new();
        rig.check("ZADD a 1 x 2 y", ":2\r\n");
        rig.check("ZADD b 5 y", ":1\r\n");
        rig.check("ZINTERSTORE d 2 a b AGGREGATE min", ":1\r\n");
        rig.check("ZRANGE d 0 -1 WITHSCORES", "*2\r\n$1\r\ny\r\n$1\r\n2\r\n");
    }
}
