//! HKEYS: all fields of a hash.

use super::read;
use crate::made::{self, All, Form};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::hash::Hash;

command! {
    /// Returns all fields of a hash.
    HKEYS = run: "hkeys", syntax "key", arity 2, group Hash, since "2.0.0", flags READONLY,
    complexity "O(N) with N fields", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let Some(hash) = read(ctx, args.get(1))? else {
        reply.array(0);
        return Ok(());
    };
    reply.array(hash.len());
    made::write::<Hash>(hash, All::of(hash, Form::Name), reply);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    all_of_them: "
        HKEYS k => *0
        HSET k a 1 b 2 => :2
        HKEYS k => *2 'a' 'b'
        resp3: HKEYS none => *0
    "
}
