//! ZRANGESTORE: a part of a sorted set as the value of another key.

use super::rangeof::{self, Fixed};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Stores a part of a sorted set at another key and returns how many members it has.
    ZRANGESTORE = run: "zrangestore",
    syntax "dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]", arity -5,
    group SortedSet, since "6.2.0", flags WRITE | DENYOOM,
    complexity "O(log(N) + M log(M)) with N members in the set and M in the range",
    keys Keys::FIRST_TWO,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let fixed = Fixed {
        store: true,
        ..Fixed::default()
    };
    rangeof::store(ctx, &args, reply, fixed)
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn stores_or_removes() {
        let mut rig = Rig::new();
        rig.check("ZADD z 1 a 2 b 3 c", ":3\r\n");
        rig.check("SET d x", "+OK\r\n");
        rig.check("ZRANGESTORE d z 0 0 REV", ":1\r\n");
        rig.check("ZRANGE d 0 -1 WITHSCORES", "*2\r\n$1\r\nc\r\n$1\r\n3\r\n");
        rig.check("ZRANGESTORE z z 2 inf BYSCORE LIMIT 0 1", ":1\r\n");
        rig.check("ZRANGE z 0 -1", "*1\r\n$1\r\nb\r\n");
        rig.check("ZRANGESTORE d none 0 -1", ":0\r\n");
        rig.check("EXISTS d", ":0\r\n");
        rig.check("ZRANGESTORE d z 0 1 WITHSCORES", "-ERR syntax error\r\n");
    }
}
