//! ZREMRANGEBYRANK: removes members by position.

use super::bounds::By;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Removes the members of a sorted set by position and tells how many there were.
    ZREMRANGEBYRANK = run: "zremrangebyrank", syntax "key start stop", arity 4, group SortedSet,
    since "2.0.0", flags WRITE, complexity "O(log(N) + M) with N members in the set and M removed",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    super::remrange::run(ctx, &args, reply, By::Rank)
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn by_position() {
        let mut rig = Rig::new();
        rig.check("ZADD z 1 a 2 b 3 c 4 d", ":4\r\n");
        rig.check("ZREMRANGEBYRANK z 5 9", ":0\r\n");
        rig.check("ZREMRANGEBYRANK z 1 -2", ":2\r\n");
        rig.check("ZRANGE z 0 -1", "*2\r\n$1\r\na\r\n$1\r\nd\r\n");
        rig.check("ZREMRANGEBYRANK z 0 -1", ":2\r\n");
        rig.check("EXISTS z", ":0\r\n");
        rig.check("ZREMRANGEBYRANK z 0 -1", ":0\r\n");
    }

    #[test]
    fn large_sets() {
        let mut rig = Rig::new();
        for n in 0..300 {
            rig.check(&format!("ZADD z {n} m{n}"), ":1\r\n");
        }
        rig.check("ZREMRANGEBYRANK z 1 -2", ":298\r\n");
        rig.check("ZRANGE z 0 -1", "*2\r\n$2\r\nm0\r\n$4\r\nm299\r\n");
        rig.check("ZSCORE z m5", "$-1\r\n");
        rig.check("ZREMRANGEBYRANK z 0 -1", ":2\r\n");
        rig.check("EXISTS z", ":0\r\n");
    }
}
