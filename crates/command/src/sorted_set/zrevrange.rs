//! ZREVRANGE: a part of a sorted set by position, from the highest score.

use super::bounds::By;
use super::rangeof::{self, Fixed};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns a part of a sorted set by position, counted from the highest score.
    ZREVRANGE = run: "zrevrange", syntax "key start stop [WITHSCORES]", arity -4, group SortedSet,
    since "1.2.0", flags READONLY,
    complexity "O(log(N) + M) with N members in the set and M in the reply", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let fixed = Fixed {
        by: Some(By::Rank),
        back: Some(true),
        ..Fixed::default()
    };
    rangeof::run(ctx, &args, reply, fixed)
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn counts_from_the_highest() {
        let mut rig = Rig::new();
        for n in 100..400 {
            rig.check(&format!("ZADD z {n} m{n}"), ":1\r\n");
        }
        rig.check("ZREVRANGE z 0 1", "*2\r\n$4\r\nm399\r\n$4\r\nm398\r\n");
        rig.check(
            "ZREVRANGE z -1 -1 WITHSCORES",
            "*2\r\n$4\r\nm100\r\n$3\r\n100\r\n",
        );
        rig.check("ZREVRANGE z 0 1 REV", "-ERR syntax error\r\n");
    }
}
