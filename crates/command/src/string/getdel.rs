//! GETDEL: returns a value and removes its key.

use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;

pub static GETDEL: Command = Command {
    spec: Spec {
        name: "getdel",
        summary: "Returns the string at a key and removes the key.",
        since: "6.2.0",
        group: Group::String,
        complexity: "O(1)",
        arity: 2,
        flags: Flags::WRITE.or(Flags::FAST),
        keys: Keys::FIRST,
        syntax: "key",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    match ctx.shard.peek(ctx.db, key, ctx.now)? {
        Some(value) => reply.value(value),
        None => {
            reply.null();
            return Ok(());
        }
    }
    ctx.shard.remove(ctx.db, key, ctx.now);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn reads_once() {
        let mut rig = Rig::new();
        rig.check("SET k v", "+OK\r\n");
        rig.check("GETDEL k", "$1\r\nv\r\n");
        rig.check("GETDEL k", "$-1\r\n");
        rig.check("GET k", "$-1\r\n");
        rig.check("SET k v PX 5", "+OK\r\n");
        rig.advance_ms(5).check("GETDEL k", "$-1\r\n");
    }
}
