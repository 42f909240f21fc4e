//! GEORADIUSBYMEMBER: the members around another.

use super::search::{self, Form};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns or stores the members of a sorted set around one of them.
    GEORADIUSBYMEMBER = run: "georadiusbymember",
    syntax "key member radius M | KM | FT | MI [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC] [STORE key | STOREDIST key]",
    arity -5, group Geo, since "3.2.0", flags WRITE | DENYOOM | MOVABLE_KEYS,
    complexity "O(N + log(M)) with N members in the area that is looked through and M in the set",
    keys Keys::Custom {
        find: |args, db, keys| search::keys(args, 5, db, keys),
        shown: (1, 1, 1),
    },
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    search::run(ctx, &args, reply, Form::ByMember { store: true })
}

#[cfg(test)]
crate::testing::transcripts! {
    finds_and_stores: "
        GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania => :2
        GEORADIUSBYMEMBER g Palermo 200 km ASC => *2 'Palermo' 'Catania'
        GEORADIUSBYMEMBER g Palermo 200 km STOREDIST d => :2
        ZRANGE d 0 0 => *1 'Palermo'
        GEORADIUSBYMEMBER none Palermo x km => *0
        GEORADIUSBYMEMBER g none 1 km => -ERR could not decode requested zset member
    "
}
