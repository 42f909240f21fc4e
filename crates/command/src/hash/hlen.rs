//! HLEN: how many fields a hash has.

use super::read;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::hash::View;

command! {
    /// Returns the number of fields of a hash.
    HLEN = run: "hlen", syntax "key", arity 2, group Hash, since "2.0.0", flags READONLY | FAST,
    complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    reply.count(read(ctx, args.get(1))?.map_or(0, View::len));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    fields_or_none: "
        HLEN k => :0
        HSET k a 1 b 2 => :2
        HLEN k => :2
        SADD s a => :1
        HLEN s => -WRONGTYPE Operation against a key holding the wrong kind of value
    "
}
