//! RPUSH: puts elements at the end of a list.

use super::ends::{self, End};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Puts elements at the end of a list, creating the list where it is missing, and returns its
    /// length.
    RPUSH = run: "rpush", syntax "key element [element ...]", arity -3, group List, since "1.0.0",
    flags WRITE | DENYOOM | FAST, complexity "O(1) for each element", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    ends::push(ctx, &args, End::Right, false, reply)
}

#[cfg(test)]
crate::testing::transcripts! {
    in_the_order_given: "
        RPUSH k a b => :2
        RPUSH k '' => :3
        LRANGE k 0 -1 => *3 'a' 'b' ''
    "

    keeps_the_expiry: "
        RPUSH k a => :1
        PEXPIRE k 10 => :1
        RPUSH k b => :2
        after 10 ms: LLEN k => :0
    "
}
