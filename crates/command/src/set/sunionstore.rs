//! SUNIONSTORE: keeps what is in any of several sets.

use super::combine::{sets, store, union};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Stores the members of several sets, each once; answers how many.
    SUNIONSTORE = run: "sunionstore", syntax "destination key [key ...]", arity -3, group Set,
    since "1.0.0", flags WRITE | DENYOOM | SLOW,
    complexity "O(N) with N members of all sets but the largest", keys Keys::ALL,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let sets = sets(ctx, args.iter_from(2))?;
    let all = union(sets, ctx.shard.tuning());
    store(ctx, args.get(1), all, reply);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn replaces_or_removes_the_destination() {
        let mut rig = Rig::new();
        rig.check("SADD a x y", ":2\r\n");
        rig.check("SADD b y z", ":2\r\n");
        rig.check("SUNIONSTORE a a b", ":3\r\n");
        rig.check("SMISMEMBER a x y z w", "*4\r\n:1\r\n:1\r\n:1\r\n:0\r\n");
        rig.check("SUNIONSTORE a none nothing", ":0\r\n");
        rig.check("EXISTS a", ":0\r\n");
    }

    #[test]
    fn a_copy_of_a_large_one_is_another() {
        let mut rig = Rig::new();
        for n in 0..3_000 {
            rig.check(&format!("SADD a {n}"), ":1\r\n");
        }
        rig.check("SADD b 1 x", ":2\r\n");
        rig.check("SUNIONSTORE c b a", ":3001\r\n");
        rig.check("SREM c 1 2 3", ":3\r\n");
        rig.check("SCARD a", ":3000\r\n");
        rig.check("SCARD c", ":2998\r\n");
    }
}
