//! LINDEX: one element of a list.

use crate::options::integer;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the element of a list at an index, negative ones counted from the end.
    LINDEX = run: "lindex", syntax "key index", arity 3, group List, since "1.0.0", flags READONLY,
    complexity "O(log N) with N elements in the list", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let Some(view) = super::read(ctx, args.get(1))? else {
        reply.null();
        return Ok(());
    };
    match view.at(integer(args.get(2))?) {
        Some(element) => reply.bulk(element),
        None => reply.null(),
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    from_both_ends: "
        RPUSH k a b c => :3
        LINDEX k 0 => 'a'
        LINDEX k -1 => 'c'
        LINDEX k -3 => 'a'
        LINDEX k 3 => $-1
        LINDEX k -4 => $-1
        LINDEX none x => $-1
        LINDEX k x => -ERR value is not an integer or out of range
    "
}
