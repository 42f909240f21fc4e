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
crate::testing::transcripts! {
    scores_are_weighed_and_aggregated: "
        ZADD a 1 x 2 y => :2
        ZADD b 3 y 4 z => :2
        ZUNION 2 a b => *3 'x' 'z' 'y'
        ZUNION 3 a b none WEIGHTS 10 1 1 AGGREGATE MAX WITHSCORES => *6 'z' '4' 'x' '10' 'y' '20'
        resp3: ZUNION 2 a a AGGREGATE MIN WITHSCORES => *2 *2 'x' ,1 *2 'y' ,2
    "

    members_of_sets_have_the_score_1: "
        ZADD z 5 a 2 b => :2
        SADD s a c => :2
        ZUNION 2 s z WEIGHTS 2 1 WITHSCORES => *6 'b' '2' 'c' '2' 'a' '7'
        ZINTER 2 s z => *1 'a'
        ZDIFF 2 s z WITHSCORES => *2 'c' '1'
    "

    what_is_no_number_counts_as_nothing: "
        ZADD a inf x 0 y => :2
        ZADD b -inf x => :1
        ZUNION 2 a b WITHSCORES => *4 'x' '0' 'y' '0'
        ZUNION 1 a WEIGHTS 0 WITHSCORES => *4 'x' '0' 'y' '0'
    "

    refusals: "
        ZUNION 0 a => -ERR at least 1 input key is needed for 'zunion' command
        ZUNION 2 a => -ERR syntax error
        ZUNION x a => -ERR value is not an integer or out of range
        ZUNION 1 a WEIGHTS x => -ERR weight value is not a float
        ZUNION 1 a WEIGHTS => -ERR syntax error
        ZUNION 1 a AGGREGATE AVG => -ERR syntax error
        SET s x => +OK
        ZUNION 2 a s MORE => -WRONGTYPE Operation against a key holding the wrong kind of value
    "
}
