//! RPOP: takes elements off the end of a list.

use super::ends::{self, End};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Takes elements off the end of a list and returns them.
    RPOP = run: "rpop", syntax "key [count]", arity -2, group List, since "1.0.0",
    flags WRITE | FAST, complexity "O(N) with N elements returned", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    ends::pop(ctx, &args, End::Right, "rpop", reply)
}

#[cfg(test)]
crate::testing::transcripts! {
    one_or_several: "
        RPUSH k a b c d e => :5
        RPOP k => 'e'
        RPOP k 2 => *2 'd' 'c'
        RPOP k 0 => *0
        RPOP k 10 => *2 'b' 'a'
        EXISTS k => :0
        RPOP k => $-1
        RPOP k 1 => *-1
        resp3: RPOP k 1 => _
    "

    refusals: "
        RPOP k -1 => -ERR value is out of range, must be positive
        RPOP k x => -ERR value is out of range, must be positive
        RPOP k 1 2 => -ERR wrong number of arguments for 'rpop' command
    "
}
