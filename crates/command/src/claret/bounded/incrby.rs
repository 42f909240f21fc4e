//! BCOUNT.INCRBY: adds within the bounds, and tells the new value.

use crate::{Ctx, Failure, Keys, Reply, command, options};
use rufous_base::Args;
use rufous_datatype::bounded::{self, Op};

command! {
    /// Adds to a bounded counter and returns its new value; returns null, and changes nothing,
    /// where it would leave its bounds.
    INCRBY = run: "bcount.incrby", syntax "key increment", arity 3, group Claret, since "7.2.0",
    flags WRITE | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let by = options::integer(args.get(2))?;
    match super::change(ctx, &args, &Op::Incr(by))? {
        bounded::Reply::Value(value) => reply.integer(value),
        _ => reply.null(),
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    the_new_value_or_null: "
        BCOUNT.INCRBY k 1 => -ERR no such key
        BCOUNT.SET k 2 MIN -1 MAX 3 => +OK
        BCOUNT.INCRBY k -3 => :-1
        BCOUNT.INCRBY k -1 => $-1
        BCOUNT.INCRBY k 4 => :3
        BCOUNT.INCRBY k 1 => $-1
        BCOUNT.GET k => :3
    "
}
