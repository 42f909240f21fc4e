//! ZSCORE: the score of a member.

use super::reply::score;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::sorted_set::SortedSet;

command! {
    /// Returns the score of a member of a sorted set.
    ZSCORE = run: "zscore", syntax "key member", arity 3, group SortedSet, since "1.2.0",
    flags READONLY | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let view = ctx.shard.collection::<SortedSet>(ctx.db, key, ctx.now)?;
    match view.and_then(|view| view.score(args.get(2))) {
        Some(found) => score(reply, found),
        None => reply.null(),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn a_score_or_nil() {
        let mut rig = Rig::new();
        rig.check("ZSCORE z a", "$-1\r\n");
        rig.check("ZADD z 0.1 a -inf b 1e300 c 12345678901 d -0 e", ":5\r\n");
        rig.check("ZSCORE z a", "$3\r\n0.1\r\n");
        rig.check("ZSCORE z b", "$4\r\n-inf\r\n");
        rig.check("ZSCORE z c", "$6\r\n1e+300\r\n");
        rig.check("ZSCORE z d", "$11\r\n12345678901\r\n");
        rig.check("ZSCORE z e", "$1\r\n0\r\n");
        rig.check("ZSCORE z none", "$-1\r\n");
        rig.resp3().check("ZSCORE z a", ",0.1\r\n");
        rig.check("SET s x", "+OK\r\n");
        rig.check(
            "ZSCORE s a",
            "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
        );
    }
}
