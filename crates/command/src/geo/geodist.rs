//! GEODIST: the distance of two members.

use super::place::distance;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::geo::{Position, Unit};
use rufous_datatype::sorted_set::SortedSet;

command! {
    /// Returns the distance between two members of a sorted set.
    GEODIST = run: "geodist", syntax "key member1 member2 [M | KM | FT | MI]", arity -4, group Geo,
    since "3.2.0", flags READONLY, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let unit = match args.len() {
        4 => Unit::Meter,
        5 => Unit::parse(args.get(4))?,
        _ => return Err(Failure::SYNTAX),
    };
    let key = ctx.first_key(args.get(1));
    let view = ctx.shard.collection::<SortedSet>(ctx.db, key, ctx.now)?;
    let position = |at| {
        let score = view.and_then(|view| view.score(args.get(at)));
        score.map(Position::from_score)
    };
    match (position(2), position(3)) {
        (Some(from), Some(to)) => distance(reply, from.distance_m(to) / unit.meters()),
        _ => reply.null(),
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    distances_in_any_unit: "
        GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania => :2
        GEODIST g Palermo Catania => '166274.1516'
        GEODIST g Palermo Catania km => '166.2742'
        GEODIST g Palermo none => $-1
        GEODIST none a b => $-1
        GEODIST g a b x => -ERR unsupported unit provided. please use M, KM, FT, MI
        GEODIST g a b m m => -ERR syntax error
    "
}
