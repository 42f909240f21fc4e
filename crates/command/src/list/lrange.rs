//! LRANGE: a part of a list.

use crate::made::{self, Places};
use crate::options::integer;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::list::List;

command! {
    /// Returns the elements of a list from one index to another, both included.
    LRANGE = run: "lrange", syntax "key start stop", arity 4, group List, since "1.0.0",
    flags READONLY, complexity "O(log S + N) with N elements returned from a list of S",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let (start, stop) = (integer(args.get(2))?, integer(args.get(3))?);
    let Some(view) = super::read(ctx, args.get(1))? else {
        reply.array(0);
        return Ok(());
    };
    let places = view.places(start, stop);
    reply.array(places.len());
    made::write::<List>(view, Places(places), reply);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    indices_from_both_ends: "
        RPUSH k a b c => :3
        LRANGE k 0 0 => *1 'a'
        LRANGE k -2 -1 => *2 'b' 'c'
        LRANGE k -100 0 => *1 'a'
        LRANGE k 2 100 => *1 'c'
        LRANGE k 2 1 => *0
        LRANGE k 3 4 => *0
        LRANGE k 0 -4 => *0
        LRANGE none 0 -1 => *0
        LRANGE none 0 x => -ERR value is not an integer or out of range
        LRANGE k -9223372036854775808 9223372036854775807 => *3 'a' 'b' 'c'
    "
}
