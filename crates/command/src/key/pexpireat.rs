//! PEXPIREAT: sets when a key expires, in milliseconds of Unix time.

use super::expire::set_deadline;
use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;
use rufous_datatype::expire::{ExpireBase, ExpireUnit};

pub static PEXPIREAT: Command = Command {
    spec: Spec {
        name: "pexpireat",
        summary: "Sets when a key expires, in milliseconds of Unix time.",
        since: "2.6.0",
        group: Group::Generic,
        complexity: "O(1)",
        arity: -3,
        flags: Flags::WRITE.or(Flags::FAST),
        keys: Keys::FIRST,
        syntax: "key unix-time-milliseconds [NX | XX | GT | LT]",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let time = (ExpireUnit::Milliseconds, ExpireBase::Absolute);
    set_deadline(ctx, &args, reply, time, "pexpireat")
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn a_key_lives_until_then() {
        let mut rig = Rig::new();
        rig.check("SET k v", "+OK\r\n");
        rig.check("PEXPIREAT k 1700000000001", ":1\r\n");
        rig.check("PTTL k", ":1\r\n");
        rig.check("PEXPIREAT k 9223372036854775807", ":1\r\n");
        rig.check("PEXPIRETIME k", ":9223372036854775807\r\n");
        rig.check("PEXPIREAT k 1700000000000", ":1\r\n");
        rig.check("EXISTS k", ":0\r\n");
        rig.check(
            "PEXPIREAT k x",
            "-ERR value is not an integer or out of range\r\n",
        );
    }
}
