//! ZPOPMAX: takes the members with the highest scores.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Removes the members with the highest scores from a sorted set and returns them.
    ZPOPMAX = run: "zpopmax", syntax "key [count]", arity -2, group SortedSet, since "5.0.0",
    flags WRITE | FAST, complexity "O(log(N) + M) with N members in the set and M taken",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    super::pop::run(ctx, &args, reply, true)
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn takes_the_highest() {
        let mut rig = Rig::new();
        for n in 0..300 {
            rig.check(&format!("ZADD z {n} m{n}"), ":1\r\n");
        }
        rig.check(
            "ZPOPMAX z 2",
            "*4\r\n$4\r\nm299\r\n$3\r\n299\r\n$4\r\nm298\r\n$3\r\n298\r\n",
        );
        rig.check("ZPOPMAX z", "*2\r\n$4\r\nm297\r\n$3\r\n297\r\n");
        rig.check("ZCARD z", ":297\r\n");
        assert!(!rig.run(&[b"ZPOPMAX", b"z", b"290"]).is_empty());
        rig.check("ZRANGE z 6 -1", "*1\r\n$2\r\nm6\r\n");
        rig.check("ZSCORE z m100", "$-1\r\n");
    }
}
