//! HMGET: the values of several fields.

use super::read;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the values of several fields of a hash, nil for each that is missing.
    HMGET = run: "hmget", syntax "key field [field ...]", arity -3, group Hash, since "2.0.0",
    flags READONLY | FAST, complexity "O(N) with N fields", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let hash = read(ctx, args.get(1))?;
    reply.array(args.len() - 2);
    for field in args.iter_from(2) {
        match hash.and_then(|hash| hash.get(field)) {
            Some(value) => reply.bulk(value),
            None => reply.null(),
        }
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    values_in_the_order_of_the_fields: "
        HMGET k a b => *2 $-1 $-1
        HSET k a 1 b 2 => :2
        HMGET k b x a => *3 '2' $-1 '1'
        SET s v => +OK
        HMGET s a => -WRONGTYPE Operation against a key holding the wrong kind of value
    "
}
