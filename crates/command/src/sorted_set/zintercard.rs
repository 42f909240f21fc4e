//! ZINTERCARD: how many members several sets have in common.

use crate::{Command, Ctx, Failure, Flags, Group, Reply, Spec};
use rufous_base::Args;

pub static ZINTERCARD: Command = Command {
    spec: Spec {
        name: "zintercard",
        summary: "Returns how many members several sorted sets have in common.",
        since: "7.0.0",
        group: Group::SortedSet,
        complexity: "O(N K) with N members in the smallest of K sets",
        arity: -3,
        flags: Flags::READONLY.or(Flags::MOVABLE_KEYS),
        keys: super::numbered::KEYS,
        syntax: "numkeys key [key ...] [LIMIT limit]",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    super::algebra::count_common(ctx, &args, reply)
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn counts_up_to_a_limit() {
        let mut rig = Rig::new();
        rig.check("ZADD a 1 x 2 y 3 z", ":3\r\n");
        rig.check("ZADD b 1 x 2 y 3 z 4 w", ":4\r\n");
        rig.check("ZINTERCARD 2 a b", ":3\r\n");
        rig.check("ZINTERCARD 2 a b LIMIT 2", ":2\r\n");
        rig.check("ZINTERCARD 2 a b LIMIT 0", ":3\r\n");
        rig.check("ZINTERCARD 2 a none", ":0\r\n");
        rig.check(
            "ZINTERCARD 1 a LIMIT -1",
            "-ERR LIMIT can't be negative\r\n",
        );
        rig.check("ZINTERCARD 1 a LIMIT", "-ERR syntax error\r\n");
    }
}
