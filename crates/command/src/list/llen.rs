//! LLEN: how long a list is.

use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;

pub static LLEN: Command = Command {
    spec: Spec {
        name: "llen",
        summary: "Returns the length of a list, 0 where it is missing.",
        since: "1.0.0",
        group: Group::List,
        complexity: "O(1)",
        arity: 2,
        flags: Flags::READONLY.or(Flags::FAST),
        keys: Keys::FIRST,
        syntax: "key",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let view = super::read(ctx, args.get(1))?;
    reply.count(view.map_or(0, |view| view.len()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn of_lists_and_nothing_else() {
        let mut rig = Rig::new();
        rig.check("LLEN k", ":0\r\n");
        rig.check("RPUSH k a b", ":2\r\n");
        rig.check("LLEN k", ":2\r\n");
        rig.check("SET s v", "+OK\r\n");
        rig.check(
            "LLEN s",
            "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
        );
    }
}
