//! RPUSHX: puts elements at the end of a list that is there.

use super::ends::{self, End};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Puts elements at the end of a list if there is one, and returns its length.
    RPUSHX = run: "rpushx", syntax "key element [element ...]", arity -3, group List,
    since "2.2.0", flags WRITE | DENYOOM | FAST, complexity "O(1) for each element",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    ends::push(ctx, &args, End::Right, true, reply)
}

#[cfg(test)]
crate::testing::transcripts! {
    nothing_where_there_is_no_list: "
        RPUSHX k a => :0
        EXISTS k => :0
        RPUSH k a => :1
        RPUSHX k b c => :3
        RPOP k => 'c'
    "
}
