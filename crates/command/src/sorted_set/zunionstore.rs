//! ZUNIONSTORE: the members of several sets as the value of a key.

use super::algebra::{Operation, store};
use crate::{Ctx, Failure, Reply, command};
use rufous_base::Args;

command! {
    /// Stores the union of several sorted sets and returns how many members it has.
    ZUNIONSTORE = run: "zunionstore",
    syntax "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX]",
    arity -4, group SortedSet, since "2.0.0", flags WRITE | DENYOOM | MOVABLE_KEYS,
    complexity "O(N) + O(M log(M)) with N members in all sets and M in the result",
    keys super::numbered::TARGET_AND_KEYS,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    store(ctx, &args, reply, ("zunionstore", Operation::Union))
}

#[cfg(test)]
crate::testing::transcripts! {
    stores_over_anything: "
        ZADD a 1 x 2 y => :2
        SET d x EX 100 => +OK
        ZUNIONSTORE d 2 a a => :2
        ZRANGE d 0 -1 WITHSCORES => *4 'x' '2' 'y' '4'
        TTL d => :-1
        ZUNIONSTORE d 1 none => :0
        EXISTS d => :0
        ZUNIONSTORE a 1 a WEIGHTS 3 => :2
        ZSCORE a y => '6'
        ZUNIONSTORE a 1 a WITHSCORES => -ERR syntax error
        ZUNIONSTORE d 0 a => -ERR at least 1 input key is needed for 'zunionstore' command
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn large_results() {
        let mut rig = Rig::new();
        for n in 0..300 {
            rig.check(&format!("ZADD {} {n} m{n}", n % 2), ":1");
        }
        rig.check("ZUNIONSTORE d 2 0 1", ":300");
        rig.check("ZRANGE d -1 -1", "*1 'm299'");
        rig.check("ZINTERSTORE d 2 0 1", ":0");
        rig.check("ZDIFFSTORE d 2 0 1", ":150");
    }
}
