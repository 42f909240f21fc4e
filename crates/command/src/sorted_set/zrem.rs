//! ZREM: removes members.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::sorted_set::{Op, Reply as Answer, SortedSet};

command! {
    /// Removes members from a sorted set and tells how many there were.
    ZREM = run: "zrem", syntax "key member [member ...]", arity -3, group SortedSet, since "1.2.0",
    flags WRITE | FAST, complexity "O(log(N)) for each member, with N members in the set",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let removed = ctx
        .shard
        .update::<SortedSet, _>(ctx.db, key, ctx.now, |editor| {
            let members = args.iter_from(2);
            members
                .filter(|member| editor.apply(&Op::Remove { member }) == Answer::Remove(true))
                .count()
        })?;
    reply.count(removed);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn removes_members_and_the_key_with_the_last() {
        let mut rig = Rig::new();
        rig.check("ZREM z a", ":0\r\n");
        rig.check("ZADD z 1 a 2 b 3 c", ":3\r\n");
        rig.check("ZREM z a none a c", ":2\r\n");
        rig.check("ZRANGE z 0 -1", "*1\r\n$1\r\nb\r\n");
        rig.check("ZREM z b", ":1\r\n");
        rig.check("EXISTS z", ":0\r\n");
    }

    #[test]
    fn large_sets_lose_members_too() {
        let mut rig = Rig::new();
        for n in 0..500 {
            rig.check(&format!("ZADD z {n} m{n}"), ":1\r\n");
        }
        for n in 0..499 {
            rig.check(&format!("ZREM z m{n}"), ":1\r\n");
        }
        rig.check("ZRANGE z 0 -1", "*1\r\n$4\r\nm499\r\n");
        rig.check("ZREM z m499", ":1\r\n");
        rig.check("EXISTS z", ":0\r\n");
    }
}
