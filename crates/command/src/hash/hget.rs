//! HGET: the value of a field.

use super::read;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the value of a field of a hash.
    HGET = run: "hget", syntax "key field", arity 3, group Hash, since "2.0.0",
    flags READONLY | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    match read(ctx, args.get(1))?.and_then(|hash| hash.get(args.get(2))) {
        Some(value) => reply.bulk(value),
        None => reply.null(),
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    a_value_or_nil: "
        HGET k a => $-1
        HSET k a 1 1 b => :2
        HGET k a => '1'
        HGET k b => $-1
        SET s v => +OK
        HGET s a => -WRONGTYPE Operation against a key holding the wrong kind of value
        resp3: HGET k b => _
    "
}
