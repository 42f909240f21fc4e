//! GEOSEARCH: the members in a circle or a box.

use super::search::{self, Form};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the members of a sorted set whose positions are in a circle or a box.
    GEOSEARCH = run: "geosearch",
    syntax "key FROMMEMBER member | FROMLONLAT longitude latitude BYRADIUS radius M | KM | FT | MI | BYBOX width height M | KM | FT | MI [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]",
    arity -7, group Geo, since "6.2.0", flags READONLY,
    complexity "O(N + log(M)) with N members in the area that is looked through and M in the set",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    search::run(ctx, &args, reply, Form::Search)
}

#[cfg(test)]
crate::testing::transcripts! {
    circles_and_boxes: "
        GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania => :2
        GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km ASC WITHDIST => *2 *2 'Catania' '56.4413' *2 'Palermo' '190.4424'
        GEOSEARCH g FROMMEMBER Palermo BYBOX 10 10 km => *1 'Palermo'
        GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km DESC COUNT 1 WITHHASH => *1 *2 'Palermo' :3479099956230698
        GEOSEARCH none FROMMEMBER x BYRADIUS 1 m => *0
    "

    refusals: "
        GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania => :2
        GEOSEARCH g FROMMEMBER none BYRADIUS 1 m => -ERR could not decode requested zset member
        GEOSEARCH g FROMLONLAT 1 1 ASC DESC ASC => -ERR exactly one of BYRADIUS and BYBOX can be specified for GEOSEARCH
        GEOSEARCH g BYRADIUS 1 m ASC DESC => -ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for GEOSEARCH
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS -1 m => -ERR radius cannot be negative
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS x m => -ERR need numeric radius
        GEOSEARCH g FROMLONLAT 1 1 BYBOX 1 x m => -ERR need numeric height
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 1 m ANY => -ERR the ANY argument requires COUNT argument
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 1 m COUNT 0 => -ERR COUNT must be > 0
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 1 m BYBOX 1 1 m => -ERR syntax error
        GEOSEARCH g FROMLONLAT 1 1 BYRADIUS 1 m STORE x => -ERR syntax error
    "
}
