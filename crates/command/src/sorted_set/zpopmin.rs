//! ZPOPMIN: takes the members with the lowest scores.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Removes the members with the lowest scores from a sorted set and returns them.
    ZPOPMIN = run: "zpopmin", syntax "key [count]", arity -2, group SortedSet, since "5.0.0",
    flags WRITE | FAST, complexity "O(log(N) + M) with N members in the set and M taken",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    super::pop::run(ctx, &args, reply, false)
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn takes_the_lowest() {
        let mut rig = Rig::new();
        rig.check("ZPOPMIN z", "*0\r\n");
        rig.check("ZADD z 1 a 2 b 3 c 4 d", ":4\r\n");
        rig.check("ZPOPMIN z", "*2\r\n$1\r\na\r\n$1\r\n1\r\n");
        rig.check("ZPOPMIN z 0", "*0\r\n");
        rig.resp3().check("ZPOPMIN z", "*2\r\n$1\r\nb\r\n,2\r\n");
        rig.check(
            "ZPOPMIN z 5",
            "*2\r\n*2\r\n$1\r\nc\r\n,3\r\n*2\r\n$1\r\nd\r\n,4\r\n",
        );
        rig.check("EXISTS z", ":0\r\n");
        rig.check(
            "ZPOPMIN z -1",
            "-ERR value is out of range, must be positive\r\n",
        );
        rig.check(
            "ZPOPMIN z x",
            "-ERR value is out of range, must be positive\r\n",
        );
        rig.check("SET s x", "+OK\r\n");
        rig.check(
            "ZPOPMIN s",
            "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
        );
    }
}
