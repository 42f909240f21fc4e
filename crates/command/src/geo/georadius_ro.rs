//! GEORADIUS_RO: GEORADIUS that never stores.

use super::search::{self, Form};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the members of a sorted set around a position.
    GEORADIUS_RO = run: "georadius_ro",
    syntax "key longitude latitude radius M | KM | FT | MI [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC]",
    arity -6, group Geo, since "3.2.10", flags READONLY,
    complexity "O(N + log(M)) with N members in the area that is looked through and M in the set",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    search::run(ctx, &args, reply, Form::Radius { store: false })
}

#[cfg(test)]
crate::testing::transcripts! {
    never_stores: "
        GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania => :2
        GEORADIUS_RO g 15 37 200 km DESC => *2 'Palermo' 'Catania'
        GEORADIUS_RO g 15 37 200 km STORE d => -ERR syntax error
    "
}
