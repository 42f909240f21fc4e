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
crate::testing::transcripts! {
    removes_members_and_the_key_with_the_last: "
        ZREM z a => :0
        ZADD z 1 a 2 b 3 c => :3
        ZREM z a none a c => :2
        ZRANGE z 0 -1 => *1 'b'
        ZREM z b => :1
        EXISTS z => :0
    "

    large_sets_lose_members_too: "
        for {n} in 0..500: ZADD z {n} m{n} => :1
        for {n} in 0..499: ZREM z m{n} => :1
        ZRANGE z 0 -1 => *1 'm499'
        ZREM z m499 => :1
        EXISTS z => :0
    "
}
