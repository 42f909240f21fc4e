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
mod tests {
    use crate::testing::Rig;

    #[test]
    fn positions_or_nothing() {
        let mut rig = Rig::new();
        rig.check("GEOPOS g a", "*1\r\n*-1\r\n");
        rig.check(
            "GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania",
            ":2\r\n",
        );
        rig.check(
            "GEOPOS g Palermo none",
            "*2\r\n*2\r\n$20\r\n13.36138933897018433\r\n$20\r\n38.11555639549629859\r\n*-1\r\n",
        );
        rig.resp3().check(
            "GEOPOS g Palermo",
            "*1\r\n*2\r\n,13.36138933897018433\r\n,38.11555639549629859\r\n",
        );
    }
}
