//! GEOPOS: the positions of members.

use super::place::coordinates;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::geo::Position;
use rufous_datatype::sorted_set::SortedSet;

command! {
    /// Returns the positions of members of a sorted set.
    GEOPOS = run: "geopos", syntax "key [member [member ...]]", arity -2, group Geo, since "3.2.0",
    flags READONLY, complexity "O(N) with N members asked for", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let view = ctx.shard.collection::<SortedSet>(ctx.db, key, ctx.now)?;
    reply.array(args.len() - 2);
    for member in args.iter_from(2) {
        match view.and_then(|view| view.score(member)) {
            Some(score) => coordinates(reply, Position::from_score(score)),
            None => reply.null_array(),
        }
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    positions_or_nothing: "
        GEOPOS g a => *1 *-1
        GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania => :2
        GEOPOS g Palermo none => *2 *2 '13.36138933897018433' '38.11555639549629859' *-1
        resp3: GEOPOS g Palermo => *1 *2 ,13.36138933897018433 ,38.11555639549629859
    "
}
