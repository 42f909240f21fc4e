//! SDIFF: what is in one set and in no other.

use super::combine::{sets, subtract};
use crate::elements::Elements;
use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;

pub static SDIFF: Command = Command {
    spec: Spec {
        name: "sdiff",
        summary: "Returns the members of the first set that are in none of the others.",
        since: "1.0.0",
        group: Group::Set,
        complexity: "O(N * M) with N members of the first set and M other sets",
        arity: -2,
        flags: Flags::READONLY.or(Flags::SLOW),
        keys: Keys::ALL,
        syntax: "key [key ...]",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let sets = sets(ctx, args.iter_from(1))?;
    let mut found = Elements::default();
    subtract(&sets, |member| found.push(member));
    reply.set(found.count);
    found.write(reply);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn the_first_without_the_others() {
        let mut rig = Rig::new();
        rig.check("SADD a x y z", ":3\r\n");
        rig.check("SADD b y", ":1\r\n");
        rig.check("SDIFF a b none b", "*2\r\n$1\r\nx\r\n$1\r\nz\r\n");
        rig.check("SDIFF none a", "*0\r\n");
        rig.check("SDIFF a a", "*0\r\n");
        rig.check("SET s v", "+OK\r\n");
        rig.check(
            "SDIFF none a s",
            "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
        );
        rig.resp3().check("SDIFF b", "~1\r\n$1\r\ny\r\n");
    }
}
