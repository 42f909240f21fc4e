//! UID.PEEK: from where on no identifier was taken.

use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;
use rufous_datatype::algebra::Algebra;
use rufous_datatype::uid::{Op, Uid};

pub static PEEK: Command = Command {
    spec: Spec {
        name: "uid.peek",
        summary: "Returns a number above all identifiers that were taken, and takes none.",
        since: "7.2.0",
        group: Group::Claret,
        complexity: "O(1)",
        arity: 2,
        flags: Flags::READONLY.or(Flags::FAST),
        keys: Keys::FIRST,
        syntax: "key",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let view = ctx.shard.collection::<Uid>(ctx.db, key, ctx.now)?;
    let next = view.map_or(0, |view| Uid::execute(view, &Op::Peek));
    reply.integer(i64::try_from(next).unwrap_or(i64::MAX));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn takes_none() {
        let mut rig = Rig::new();
        rig.check("UID.PEEK k", ":0\r\n");
        rig.check("EXISTS k", ":0\r\n");
        rig.check("UID.NEXT k COUNT 2", "*2\r\n:0\r\n:1\r\n");
        rig.check("UID.PEEK k", ":2\r\n");
        rig.check("UID.PEEK k", ":2\r\n");
    }
}
