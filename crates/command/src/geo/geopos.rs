//! GEOPOS: the positions of members.

use super::place::coordinates;
use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;
use rufous_datatype::geo::Position;
use rufous_datatype::sorted_set::SortedSet;

pub static GEOPOS: Command = Command {
    spec: Spec {
        name: "geopos",
        summary: "Returns the positions of members of a sorted set.",
        since: "3.2.0",
        group: Group::Geo,
        complexity: "O(N) with N members asked for",
        arity: -2,
        flags: Flags::READONLY,
        keys: Keys::FIRST,
        syntax: "key [member [member ...]]",
    },
    run,
};

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
