//! BCOUNT.BOUNDS: the least and the greatest value.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::bounded::{self, Op};

command! {
    /// Returns the least and the greatest value that a bounded counter may have; null where there
    /// is none.
    BOUNDS = run: "bcount.bounds", syntax "key", arity 2, group Claret, since "7.2.0",
    flags READONLY | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    match super::ask(ctx, &args, &Op::Bounds)? {
        bounded::Reply::Bounds(min, max) => {
            reply.array(2);
            reply.integer(min);
            reply.integer(max);
        }
        _ => reply.null_array(),
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    null_where_there_is_none: "
        BCOUNT.BOUNDS k => *-1
        BCOUNT.SET k 2 MAX 4 => +OK
        BCOUNT.BOUNDS k => *2 :0 :4
    "
}
