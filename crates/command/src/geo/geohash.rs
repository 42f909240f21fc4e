//! GEOHASH: positions as text that others know.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::geo::Position;
use rufous_datatype::sorted_set::SortedSet;

command! {
    /// Returns the positions of members of a sorted set as geohashes.
    GEOHASH = run: "geohash", syntax "key [member [member ...]]", arity -2, group Geo,
    since "3.2.0", flags READONLY, complexity "O(N) with N members asked for", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let view = ctx.shard.collection::<SortedSet>(ctx.db, key, ctx.now)?;
    reply.array(args.len() - 2);
    for member in args.iter_from(2) {
        match view.and_then(|view| view.score(member)) {
            Some(score) => reply.bulk(&Position::from_score(score).geohash()),
            None => reply.null(),
        }
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    hashes_of_eleven_letters: "
        GEOHASH g a => *1 $-1
        GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania => :2
        GEOHASH g Palermo Catania => *2 'sqc8b49rny0' 'sqdtr74hyu0'
    "
}
