//! GEOSEARCHSTORE: the members in a circle or a box as the value of another key.

use super::search::{self, Form};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Stores the members of a sorted set whose positions are in a circle or a box and returns how
    /// many there are.
    GEOSEARCHSTORE = run: "geosearchstore",
    syntax "destination source FROMMEMBER member | FROMLONLAT longitude latitude BYRADIUS radius M | KM | FT | MI | BYBOX width height M | KM | FT | MI [ASC | DESC] [COUNT count [ANY]] [STOREDIST]",
    arity -8, group Geo, since "6.2.0", flags WRITE | DENYOOM,
    complexity "O(N + log(M)) with N members in the area that is looked through and M in the set",
    keys Keys::FIRST_TWO,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    search::run(ctx, &args, reply, Form::SearchStore)
}

#[cfg(test)]
crate::testing::transcripts! {
    stores_positions_or_distances: "
        GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania => :2
        GEOSEARCHSTORE d g FROMLONLAT 15 37 BYRADIUS 200 km => :2
        ZSCORE d Palermo => '3479099956230698'
        GEOSEARCHSTORE d g FROMMEMBER Palermo BYRADIUS 1 km STOREDIST => :1
        ZRANGE d 0 -1 WITHSCORES => *2 'Palermo' '0'
        GEOSEARCHSTORE d none FROMMEMBER Palermo BYRADIUS 1 km => :0
        EXISTS d => :0
        GEOSEARCHSTORE d g FROMMEMBER Palermo BYRADIUS 1 km WITHDIST => -ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options
    "
}
