//! SDIFFSTORE: keeps what is in one set and in no other.

use super::combine::{difference, sets, store};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Stores the members of the first set that are in none of the others; answers how many.
    SDIFFSTORE = run: "sdiffstore", syntax "destination key [key ...]", arity -3, group Set,
    since "1.0.0", flags WRITE | DENYOOM | SLOW,
    complexity "O(N) with N members of the first set or of all others, whichever is less",
    keys Keys::ALL,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let sets = sets(ctx, args.iter_from(2))?;
    let left = difference(sets, ctx.shard.tuning());
    store(ctx, args.get(1), left, reply);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn replaces_or_removes_the_destination() {
        let mut rig = Rig::new();
        rig.check("SADD a x y z", ":3\r\n");
        rig.check("SADD b y 1 2 3", ":4\r\n");
        rig.check("SET d v PX 10", "+OK\r\n");
        rig.check("SDIFFSTORE d a b", ":2\r\n");
        rig.advance_ms(10)
            .check("SMISMEMBER d x y z", "*3\r\n:1\r\n:0\r\n:1\r\n");
        rig.check("SDIFFSTORE b b a", ":3\r\n");
        rig.check("SMISMEMBER b y 1 2 3", "*4\r\n:0\r\n:1\r\n:1\r\n:1\r\n");
        rig.check("SDIFFSTORE a a none a", ":0\r\n");
        rig.check("EXISTS a", ":0\r\n");
    }

    #[test]
    fn a_little_from_a_large_one() {
        let mut rig = Rig::new();
        for n in 0..3_000 {
            rig.check(&format!("SADD a {n}"), ":1\r\n");
        }
        rig.check("SADD b 5 6 3000", ":3\r\n");
        rig.check("SDIFFSTORE d a b", ":2998\r\n");
        rig.check("SCARD a", ":3000\r\n");
        rig.check("SDIFFSTORE b d a", ":0\r\n");
        rig.check("SDIFFSTORE b a d", ":2\r\n");
    }
}
