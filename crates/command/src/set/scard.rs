//! SCARD: how many members a set has.

use super::read;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::set::View;

command! {
    /// Returns the number of members of a set.
    SCARD = run: "scard", syntax "key", arity 2, group Set, since "1.0.0", flags READONLY | FAST,
    complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    reply.count(read(ctx, args.get(1))?.map_or(0, View::len));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    members_or_none: "
        SCARD k => :0
        SADD k a b => :2
        SCARD k => :2
        SET s v => +OK
        SCARD s => -WRONGTYPE Operation against a key holding the wrong kind of value
    "
}
