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
mod tests {
    use crate::testing::Rig;

    #[test]
    fn from_one_to_the_other() {
        let mut rig = Rig::new();
        rig.check("SMOVE a b x", ":0\r\n");
        rig.check("SADD a x y", ":2\r\n");
        rig.check("SMOVE a b x", ":1\r\n");
        rig.check("SMOVE a b x", ":0\r\n");
        rig.check("SMEMBERS a", "*1\r\n$1\r\ny\r\n");
        rig.check("SMEMBERS b", "*1\r\n$1\r\nx\r\n");
        rig.check("SMOVE a a y", ":1\r\n");
        rig.check("SMOVE a b y", ":1\r\n");
        rig.check("EXISTS a", ":0\r\n");
        rig.check("SCARD b", ":2\r\n");
    }

    #[test]
    fn wrong_types_change_nothing() {
        let mut rig = Rig::new();
        let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
        rig.check("SET s v", "+OK\r\n");
        rig.check("SMOVE none s x", ":0\r\n");
        rig.check("SMOVE s none x", wrong);
        rig.check("SADD a x", ":1\r\n");
        rig.check("SMOVE a s x", wrong);
        rig.check("SMOVE a s none", wrong);
        rig.check("SMEMBERS a", "*1\r\n$1\r\nx\r\n");
    }
}
