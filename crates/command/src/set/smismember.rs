//! SMISMEMBER: which of several things are members of a set.

use super::read;
use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;

pub static SMISMEMBER: Command = Command {
    spec: Spec {
        name: "smismember",
        summary: "Tells of each of several things whether it is a member of a set.",
        since: "6.2.0",
        group: Group::Set,
        complexity: "O(N) with N members asked for",
        arity: -3,
        flags: Flags::READONLY.or(Flags::FAST),
        keys: Keys::FIRST,
        syntax: "key member [member ...]",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let set = read(ctx, args.get(1))?;
    reply.array(args.len() - 2);
    for member in args.iter_from(2) {
        let found = set.is_some_and(|set| set.contains(member));
        reply.integer(i64::from(found));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn one_or_zero_for_each() {
        let mut rig = Rig::new();
        rig.check("SMISMEMBER k a b", "*2\r\n:0\r\n:0\r\n");
        rig.check("SADD k a", ":1\r\n");
        rig.check("SMISMEMBER k b a a", "*3\r\n:0\r\n:1\r\n:1\r\n");
    }
}
