//! PTTL: how long a key still lives, in milliseconds.

use super::ttl::deadline;
use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;
use rufous_datatype::expire;

pub static PTTL: Command = Command {
    spec: Spec {
        name: "pttl",
        summary: "Returns the remaining time to live of a key, in milliseconds.",
        since: "2.6.0",
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
    deadline(ctx, &args, reply, expire::remaining_ms);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn to_the_millisecond() {
        let mut rig = Rig::new();
        rig.check("PTTL k", ":-2\r\n");
        rig.check("SET k v", "+OK\r\n");
        rig.check("PTTL k", ":-1\r\n");
        rig.check("PEXPIRE k 1499", ":1\r\n");
        rig.advance_ms(99).check("PTTL k", ":1400\r\n");
    }
}
