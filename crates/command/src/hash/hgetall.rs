//! HGETALL: all fields with their values.

use super::read;
use crate::made::{self, All, Form};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::hash::Hash;

command! {
    /// Returns all fields of a hash with their values.
    HGETALL = run: "hgetall", syntax "key", arity 2, group Hash, since "2.0.0", flags READONLY,
    complexity "O(N) with N fields", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let Some(hash) = read(ctx, args.get(1))? else {
        reply.map(0);
        return Ok(());
    };
    reply.map(hash.len());
    made::write::<Hash>(hash, All::of(hash, Form::Both), reply);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    a_map_or_a_flat_array: "
        HGETALL k => *0
        HSET k a 1 b 2 => :2
        HGETALL k => *4 'a' '1' 'b' '2'
        SET s v => +OK
        HGETALL s => -WRONGTYPE Operation against a key holding the wrong kind of value
        resp3: HGETALL k => %2 'a' '1' 'b' '2'
        HGETALL none => %0
    "
}
