//! ZREVRANGEBYSCORE: members with scores between two, highest first.

use super::bounds::By;
use super::rangeof::{self, Fixed};
use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;

pub static ZREVRANGEBYSCORE: Command = Command {
    spec: Spec {
        name: "zrevrangebyscore",
        summary: "Returns the members of a sorted set with scores between two, the highest first.",
        since: "2.2.0",
        group: Group::SortedSet,
        complexity: "O(log(N) + M) with N members in the set and M in the reply",
        arity: -4,
        flags: Flags::READONLY,
        keys: Keys::FIRST,
        syntax: "key max min [WITHSCORES] [LIMIT offset count]",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let fixed = Fixed {
        by: Some(By::Score),
        back: Some(true),
        ..Fixed::default()
    };
    rangeof::run(ctx, &args, reply, fixed)
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn the_greater_bound_comes_first() {
        let mut rig = Rig::new();
        rig.check("ZADD z 1 a 2 b 3 c", ":3\r\n");
        rig.check(
            "ZREVRANGEBYSCORE z 3 (1 LIMIT 0 10",
            "*2\r\n$1\r\nc\r\n$1\r\nb\r\n",
        );
        rig.check("ZREVRANGEBYSCORE z 1 3", "*0\r\n");
    }
}
