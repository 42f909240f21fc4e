//! SCARD: how many members a set has.

use super::read;
use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;
use rufous_datatype::set::View;

pub static SCARD: Command = Command {
    spec: Spec {
        name: "scard",
        summary: "Returns the number of members of a set.",
        since: "1.0.0",
        group: Group::Set,
        complexity: "O(1)",
        arity: 2,
        flags: Flags::READONLY.or(Flags::FAST),
        keys: Keys::FIRST,
        syntax: "key",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    reply.count(read(ctx, args.get(1))?.map_or(0, View::len));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn members_or_none() {
        let mut rig = Rig::new();
        rig.check("SCARD k", ":0\r\n");
        rig.check("SADD k a b", ":2\r\n");
        rig.check("SCARD k", ":2\r\n");
        rig.check("SET s v", "+OK\r\n");
        rig.check(
            "SCARD s",
            "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
        );
    }
}
