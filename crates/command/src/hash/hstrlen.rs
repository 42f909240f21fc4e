//! HSTRLEN: how long the value of a field is.

use super::read;
use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;

pub static HSTRLEN: Command = Command {
    spec: Spec {
        name: "hstrlen",
        summary: "Returns the length of the value of a field, 0 where it is missing.",
        since: "3.2.0",
        group: Group::Hash,
        complexity: "O(1)",
        arity: 3,
        flags: Flags::READONLY.or(Flags::FAST),
        keys: Keys::FIRST,
        syntax: "key field",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let value = read(ctx, args.get(1))?.and_then(|hash| hash.get(args.get(2)));
    reply.count(value.map_or(0, <[u8]>::len));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn bytes_or_none() {
        let mut rig = Rig::new();
        rig.check("HSTRLEN k a", ":0\r\n");
        rig.check("HSET k a bcd", ":1\r\n");
        rig.check("HSTRLEN k a", ":3\r\n");
        rig.check("HSTRLEN k bcd", ":0\r\n");
    }
}
