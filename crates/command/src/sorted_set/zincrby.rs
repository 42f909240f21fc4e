//! ZINCRBY: adds to the score of a member.

use super::zadd::{increment, score_of};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::sorted_set::Only;

command! {
    /// Adds to the score of a member of a sorted set; one that is not there begins at 0.
    ZINCRBY = run: "zincrby", syntax "key increment member", arity 4, group SortedSet,
    since "1.2.0", flags WRITE | DENYOOM | FAST, complexity "O(log(N)) with N members in the set",
    keys Keys::FIRST,
}

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
