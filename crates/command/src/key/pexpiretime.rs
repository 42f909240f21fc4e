//! PEXPIRETIME: when a key expires, in milliseconds of Unix time.

use super::ttl::deadline;
use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;

pub static PEXPIRETIME: Command = Command {
    spec: Spec {
        name: "pexpiretime",
        summary: "Returns the Unix time in milliseconds at which a key expires.",
        since: "7.0.0",
        group: Group::Generic,
        complexity: "O(1)",
        arity: 2,
        flags: Flags::READONLY.or(Flags::FAST),
        keys: Keys::FIRST,
        syntax: "key",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    deadline(ctx, &args, reply, |at, _| at);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn to_the_millisecond() {
        let mut rig = Rig::new();
        rig.check("PEXPIRETIME k", ":-2\r\n");
        rig.check("SET k v", "+OK\r\n");
        rig.check("PEXPIRETIME k", ":-1\r\n");
        rig.check("PEXPIREAT k 1700000001499", ":1\r\n");
        rig.check("PEXPIRETIME k", ":1700000001499\r\n");
    }
}
