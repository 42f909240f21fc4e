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
mod tests {
    use crate::testing::Rig;

    #[test]
    fn finds_and_stores() {
        let mut rig = Rig::new();
        rig.check(
            "GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania",
            ":2\r\n",
        );
        rig.check(
            "GEORADIUSBYMEMBER g Palermo 200 km ASC",
            "*2\r\n$7\r\nPalermo\r\n$7\r\nCatania\r\n",
        );
        rig.check("GEORADIUSBYMEMBER g Palermo 200 km STOREDIST d", ":2\r\n");
        rig.check("ZRANGE d 0 0", "*1\r\n$7\r\nPalermo\r\n");
        rig.check("GEORADIUSBYMEMBER none Palermo x km", "*0\r\n");
        rig.check(
            "GEORADIUSBYMEMBER g none 1 km",
            "-ERR could not decode requested zset member\r\n",
        );
    }
}
