//! BCOUNT.ADD: adds within the bounds, and tells no more than whether it did.

use crate::{Ctx, Failure, Keys, Reply, command, options};
use rufous_base::Args;
use rufous_datatype::bounded::{self, Op};

command! {
    /// Adds to a bounded counter and returns 1; returns 0, and changes nothing, where it would
    /// leave its bounds. As the new value is not told, such adds are independent while there is
    /// enough for all.
    ADD = run: "bcount.add", syntax "key increment", arity 3, group Claret, since "7.2.0",
    flags WRITE | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let by = options::integer(args.get(2))?;
    let told = super::change(ctx, &args, &Op::Add(by))?;
    reply.integer(i64::from(told == bounded::Reply::Accepted));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    only_within_the_bounds: "
        BCOUNT.ADD k 1 => -ERR no such key
        EXISTS k => :0
        BCOUNT.SET k 2 MAX 3 => +OK
        BCOUNT.ADD k -3 => :0
        BCOUNT.ADD k -2 => :1
        BCOUNT.ADD k -1 => :0
        BCOUNT.ADD k 4 => :0
        BCOUNT.ADD k 3 => :1
        BCOUNT.ADD k 0 => :1
        BCOUNT.ADD k 9223372036854775807 => :0
        BCOUNT.GET k => :3
    "
}
