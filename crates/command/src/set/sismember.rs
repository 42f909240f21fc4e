//! SISMEMBER: whether something is a member of a set.

use super::read;
use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;

pub static SISMEMBER: Command = Command {
    spec: Spec {
        name: "sismember",
        summary: "Tells whether something is a member of a set.",
        since: "1.0.0",
        group: Group::Set,
        complexity: "O(1)",
        arity: 3,
        flags: Flags::READONLY.or(Flags::FAST),
        keys: Keys::FIRST,
        syntax: "key member",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let found = read(ctx, args.get(1))?.is_some_and(|set| set.contains(args.get(2)));
    reply.integer(i64::from(found));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn one_or_zero() {
        let mut rig = Rig::new();
        rig.check("SISMEMBER k a", ":0\r\n");
        rig.check("SADD k a", ":1\r\n");
        rig.check("SISMEMBER k a", ":1\r\n");
        rig.check("SISMEMBER k b", ":0\r\n");
    }
}
