//! DECR: subtracts one from a number.

use super::counter;
use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;

pub static DECR: Command = Command {
    spec: Spec {
        name: "decr",
        summary: "Subtracts one from the integer at a key; a missing key counts as 0.",
        since: "1.0.0",
        group: Group::String,
        complexity: "O(1)",
        arity: 2,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
        keys: Keys::FIRST,
        syntax: "key",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    counter::add(ctx, args.get(1), -1, reply)
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn counts_down_to_the_least_integer() {
        let mut rig = Rig::new();
        rig.check("DECR n", ":-1\r\n");
        rig.check("SET n 10", "+OK\r\n");
        rig.check("DECR n", ":9\r\n");
        rig.check("GET n", "$1\r\n9\r\n");
        rig.check("SET n -9223372036854775808", "+OK\r\n");
        rig.check("DECR n", "-ERR increment or decrement would overflow\r\n");
    }
}
