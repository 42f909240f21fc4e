//! ZPOPMIN: takes the members with the lowest scores.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Removes the members with the lowest scores from a sorted set and returns them.
    ZPOPMIN = run: "zpopmin", syntax "key [count]", arity -2, group SortedSet, since "5.0.0",
    flags WRITE | FAST, complexity "O(log(N) + M) with N members in the set and M taken",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    super::pop::run(ctx, &args, reply, false)
}

#[cfg(test)]
crate::testing::transcripts! {
    takes_the_lowest: "
        ZPOPMIN z => *0
        ZADD z 1 a 2 b 3 c 4 d => :4
        ZPOPMIN z => *2 'a' '1'
        ZPOPMIN z 0 => *0
        resp3: ZPOPMIN z => *2 'b' ,2
        ZPOPMIN z 5 => *2 *2 'c' ,3 *2 'd' ,4
        EXISTS z => :0
        ZPOPMIN z -1 => -ERR value is out of range, must be positive
        ZPOPMIN z x => -ERR value is out of range, must be positive
        SET s x => +OK
        ZPOPMIN s => -WRONGTYPE Operation against a key holding the wrong kind of value
    "
}
