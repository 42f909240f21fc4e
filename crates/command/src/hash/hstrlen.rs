//! HSTRLEN: how long the value of a field is.

use super::read;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the length of the value of a field, 0 where it is missing.
    HSTRLEN = run: "hstrlen", syntax "key field", arity 3, group Hash, since "3.2.0",
    flags READONLY | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let value = read(ctx, args.get(1))?.and_then(|hash| hash.get(args.get(2)));
    reply.count(value.map_or(0, <[u8]>::len));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    bytes_or_none: "
        HSTRLEN k a => :0
        HSET k a bcd => :1
        HSTRLEN k a => :3
        HSTRLEN k bcd => :0
    "
}
