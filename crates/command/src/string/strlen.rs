//! STRLEN: how long a value is.

use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;

pub static STRLEN: Command = Command {
    spec: Spec {
        name: "strlen",
        summary: "Tells the length of the string at a key in bytes; 0 for a missing key.",
        since: "2.2.0",
        group: Group::String,
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
    let value = ctx.shard.get(ctx.db, key, ctx.now)?;
    reply.count(value.map_or(0, |value| value.bytes().len()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn counts_bytes() {
        let mut rig = Rig::new();
        rig.check("STRLEN k", ":0\r\n");
        rig.check("SET k \u{e9}a", "+OK\r\n");
        rig.check("STRLEN k", ":3\r\n");
        rig.check("SET k \"\"", "+OK\r\n");
        rig.check("STRLEN k", ":0\r\n");
    }
}
