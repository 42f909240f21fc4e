//! SMOVE: moves a member from one set to another.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::set::{Op, Set};
use rufous_kernel::shard::Any;

command! {
    /// Moves a member from one set to another; answers whether it was there.
    SMOVE = run: "smove", syntax "source destination member", arity 4, group Set, since "1.0.0",
    flags WRITE | FAST, complexity "O(1)", keys Keys::FIRST_TWO,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let (from, to) = (ctx.first_key(args.get(1)), ctx.key(args.get(2)));
    let member = args.get(3);
    let Some(source) = ctx.shard.look(ctx.db, from, ctx.now) else {
        reply.integer(0);
        return Ok(());
    };
    let found = source.of::<Set>()?.contains(member);
    let target = ctx.shard.look(ctx.db, to, ctx.now).map(Any::of::<Set>);
    target.transpose()?;
    if found && from.bytes != to.bytes {
        let shard = &mut *ctx.shard;
        shard.update::<Set, _>(ctx.db, from, ctx.now, |set| {
            set.apply(&Op::Remove { member });
        })?;
        shard.update::<Set, _>(ctx.db, to, ctx.now, |set| {
            set.apply(&Op::Add { member });
        })?;
    }
    reply.integer(i64::from(found));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    from_one_to_the_other: "
        SMOVE a b x => :0
        SADD a x y => :2
        SMOVE a b x => :1
        SMOVE a b x => :0
        SMEMBERS a => *1 'y'
        SMEMBERS b => *1 'x'
        SMOVE a a y => :1
        SMOVE a b y => :1
        EXISTS a => :0
        SCARD b => :2
    "

    wrong_types_change_nothing: "
        SET s v => +OK
        SMOVE none s x => :0
        SMOVE s none x => -WRONGTYPE Operation against a key holding the wrong kind of value
        SADD a x => :1
        SMOVE a s x => -WRONGTYPE Operation against a key holding the wrong kind of value
        SMOVE a s none => -WRONGTYPE Operation against a key holding the wrong kind of value
        SMEMBERS a => *1 'x'
    "
}
