//! ZUNION: the members of several sets.

use super::algebra::{Operation, read};
use crate::{Ctx, Failure, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the union of several sorted sets.
    ZUNION = run: "zunion",
    syntax "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]",
    arity -3, group SortedSet, since "6.2.0", flags READONLY | MOVABLE_KEYS,
    complexity "O(N) + O(M log(M)) with N members in all sets and M in the result",
    keys super::numbered::KEYS,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    read(ctx, &args, reply, ("zunion", Operation::Union))
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn scores_are_weighed_and_aggregated() {
        let mut rig = Rig::new();
        rig.check("ZADD a 1 x 2 y", ":2\r\n");
        rig.check("ZADD b 3 y 4 z", ":2\r\n");
        rig.check("ZUNION 2 a b", "*3\r\n$1\r\nx\r\n$1\r\nz\r\n$1\r\ny\r\n");
        rig.check(
            "ZUNION 3 a b none WEIGHTS 10 1 1 AGGREGATE MAX WITHSCORES",
            "*6\r\n$1\r\nz\r\n$1\r\n4\r\n$1\r\nx\r\n$2\r\n10\r\n$1\r\ny\r\n$2\r\n20\r\n",
        );
        rig.resp3().check(
            "ZUNION 2 a a AGGREGATE MIN WITHSCORES",
            "*2\r\n*2\r\n$1\r\nx\r\n,1\r\n*2\r\n$1\r\ny\r\n,2\r\n",
        );
    }

    #[test]
    fn members_of_sets_have_the_score_1() {
        let mut rig = Rig::new();
        rig.check("ZADD z 5 a 2 b", ":2\r\n");
        rig.check("SADD s a c", ":2\r\n");
        rig.check(
            "ZUNION 2 s z WEIGHTS 2 1 WITHSCORES",
            "*6\r\n$1\r\nb\r\n$1\r\n2\r\n$1\r\nc\r\n$1\r\n2\r\n$1\r\na\r\n$1\r\n7\r\n",
        );
        rig.check("ZINTER 2 s z", "*1\r\n$1\r\na\r\n");
        rig.check("ZDIFF 2 s z WITHSCORES", "*2\r\n$1\r\nc\r\n$1\r\n1\r\n");
    }

    #[test]
    fn what_is_no_number_counts_as_nothing() {
        let mut rig = Rig::new();
        rig.check("ZADD a inf x 0 y", ":2\r\n");
        rig.check("ZADD b -inf x", ":1\r\n");
        rig.check(
            "ZUNION 2 a b WITHSCORES",
            "*4\r\n$1\r\nx\r\n$1\r\n0\r\n$1\r\ny\r\n$1\r\n0\r\n",
        );
        rig.check(
            "ZUNION 1 a WEIGHTS 0 WITHSCORES",
            "*4\r\n$1\r\nx\r\n$1\r\n0\r\n$1\r\ny\r\n$1\r\n0\r\n",
        );
    }

    #[test]
    fn refusals() {
        let mut rig = Rig::new();
        rig.check(
            "ZUNION 0 a",
            "-ERR at least 1 input key is needed for 'zunion' command\r\n",
        );
        rig.check("ZUNION 2 a", "-ERR syntax error\r\n");
        rig.check(
            "ZUNION x a",
            "-ERR value is not an integer or out of range\r\n",
        );
        rig.check(
            "ZUNION 1 a WEIGHTS x",
            "-ERR weight value is not a float\r\n",
        );
        rig.check("ZUNION 1 a WEIGHTS", "-ERR syntax error\r\n");
        rig.check("ZUNION 1 a AGGREGATE AVG", "-ERR syntax error\r\n");
        rig.check("SET s x", "+OK\r\n");
        rig.check(
            "ZUNION 2 a s MORE",
            "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
        );
    }
}
