//! BCOUNT.GET: the value.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::bounded::{self, Op};

command! {
    /// Returns the value of a bounded counter; null where there is none.
    GET = run: "bcount.get", syntax "key", arity 2, group Claret, since "7.2.0",
    flags READONLY | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    match super::ask(ctx, &args, &Op::Get)? {
        bounded::Reply::Value(value) => reply.integer(value),
        _ => reply.null(),
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    null_where_there_is_none: "
        BCOUNT.GET k => $-1
        BCOUNT.SET k 2 => +OK
        BCOUNT.GET k => :2
    "
}
