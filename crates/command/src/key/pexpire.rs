//! PEXPIRE: gives a key a time to live in milliseconds.

use super::expire::set_deadline;
use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;
use rufous_datatype::expire::{ExpireBase, ExpireUnit};

pub static PEXPIRE: Command = Command {
    spec: Spec {
        name: "pexpire",
        summary: "Gives a key a time to live in milliseconds.",
        since: "2.6.0",
        group: Group::Generic,
        complexity: "O(1)",
        arity: -3,
        flags: Flags::WRITE.or(Flags::FAST),
        keys: Keys::FIRST,
        syntax: "key milliseconds [NX | XX | GT | LT]",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let time = (ExpireUnit::Milliseconds, ExpireBase::Relative);
    set_deadline(ctx, &args, reply, time, "pexpire")
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn a_key_lives_so_many_milliseconds() {
        let mut rig = Rig::new();
        rig.check("SET k v", "+OK\r\n");
        rig.check("PEXPIRE k 1500", ":1\r\n");
        rig.check("PTTL k", ":1500\r\n");
        rig.check("PEXPIRE k 2000 LT", ":0\r\n");
        rig.check(
            "PEXPIRE k 9223372036854775807",
            "-ERR invalid expire time in 'pexpire' command\r\n",
        );
        rig.check("PEXPIRE k -9223372036854775808", ":1\r\n");
        rig.check("EXISTS k", ":0\r\n");
    }
}
