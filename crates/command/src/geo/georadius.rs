//! GEORADIUS: the members around a position.

use super::search::{self, Form};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns or stores the members of a sorted set around a position.
    GEORADIUS = run: "georadius",
    syntax "key longitude latitude radius M | KM | FT | MI [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC] [STORE key | STOREDIST key]",
    arity -6, group Geo, since "3.2.0", flags WRITE | DENYOOM | MOVABLE_KEYS,
    complexity "O(N + log(M)) with N members in the area that is looked through and M in the set",
    keys Keys::Custom {
        find: |args, db, keys| search::keys(args, 6, db, keys),
        shown: (1, 1, 1),
    },
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    search::run(ctx, &args, reply, Form::Radius { store: true })
}

#[cfg(test)]
crate::testing::transcripts! {
    finds_and_stores: "
        GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania => :2
        GEORADIUS g 15 37 100 km => *1 'Catania'
        GEORADIUS g 15 37 200 km COUNT 1 ANY STORE d => :1
        ZCARD d => :1
        GEORADIUS none 15 37 200 km STOREDIST d => :0
        EXISTS d => :0
        GEORADIUS g 15 37 200 km STORE d WITHDIST => -ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options
        GEORADIUS g 15 37 200 km FROMMEMBER x => -ERR syntax error
    "
}
