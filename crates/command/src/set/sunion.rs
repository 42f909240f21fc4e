//! SUNION: what is in any of several sets.

use super::combine::{sets, union};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the members of several sets, each once.
    SUNION = run: "sunion", syntax "key [key ...]", arity -2, group Set, since "1.0.0",
    flags READONLY | SLOW, complexity "O(N) with N members of all sets", keys Keys::ALL,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let sets = sets(ctx, args.iter_from(1))?;
    let all = union(sets, ctx.shard.tuning());
    reply.set(all.view().len());
    all.view().each(|member, _| reply.bulk(member));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn each_member_once() {
        let mut rig = Rig::new();
        rig.check("SADD a x y", ":2\r\n");
        rig.check("SADD b y z w", ":3\r\n");
        let all = "4\r\n$1\r\ny\r\n$1\r\nz\r\n$1\r\nw\r\n$1\r\nx\r\n";
        rig.check("SUNION a none b a", &format!("*{all}"));
        rig.check("SUNION none", "*0\r\n");
        rig.check("SCARD b", ":3\r\n");
        rig.check("SET s v", "+OK\r\n");
        rig.check(
            "SUNION a s",
            "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
        );
        rig.resp3().check("SUNION a b", &format!("~{all}"));
    }
}
