//! ZINCRBY: adds to the score of a member.

use super::zadd::{increment, score_of};
use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;
use rufous_datatype::sorted_set::Only;

pub static ZINCRBY: Command = Command {
    spec: Spec {
        name: "zincrby",
        summary: "Adds to the score of a member of a sorted set; one that is not there begins at 0.",
        since: "1.2.0",
        group: Group::SortedSet,
        complexity: "O(log(N)) with N members in the set",
        arity: 4,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
        keys: Keys::FIRST,
        syntax: "key increment member",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let by = score_of(args.get(2))?;
    increment(ctx, args.get(1), (args.get(3), by, Only::default()), reply)
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn adds_to_a_score() {
        let mut rig = Rig::new();
        rig.check("ZINCRBY z 2 a", "$1\r\n2\r\n");
        rig.check("ZINCRBY z -3.5 a", "$4\r\n-1.5\r\n");
        rig.check("ZINCRBY z x a", "-ERR value is not a valid float\r\n");
        rig.resp3().check("ZINCRBY z 1 a", ",-0.5\r\n");
        rig.check("ZINCRBY z -inf a", ",-inf\r\n");
        rig.check(
            "ZINCRBY z inf a",
            "-ERR resulting score is not a number (NaN)\r\n",
        );
        rig.check("ZSCORE z a", ",-inf\r\n");
    }
}
