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
            rig.check(&format!("ZADD z {n} m{n}"), ":1");
        }
        rig.check("ZPOPMAX z 2", "*4 'm299' '299' 'm298' '298'");
        rig.check("ZPOPMAX z", "*2 'm297' '297'");
        rig.check("ZCARD z", ":297");
        assert!(!rig.run(&[b"ZPOPMAX", b"z", b"290"]).is_empty());
        rig.check("ZRANGE z 6 -1", "*1 'm6'");
        rig.check("ZSCORE z m100", "$-1");
    }
}
