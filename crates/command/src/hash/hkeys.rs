//! HKEYS: all fields of a hash.

use super::read;
use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;

pub static HKEYS: Command = Command {
    spec: Spec {
        name: "hkeys",
        summary: "Returns all fields of a hash.",
        since: "2.0.0",
        group: Group::Hash,
        complexity: "O(N) with N fields",
        arity: 2,
        flags: Flags::READONLY,
        keys: Keys::FIRST,
        syntax: "key",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let Some(hash) = read(ctx, args.get(1))? else {
        reply.array(0);
        return Ok(());
    };
    reply.array(hash.len());
    hash.each(|field, _| reply.bulk(field));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn all_of_them() {
        let mut rig = Rig::new();
        rig.check("HKEYS k", "*0\r\n");
        rig.check("HSET k a 1 b 2", ":2\r\n");
        rig.check("HKEYS k", "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
        rig.resp3().check("HKEYS none", "*0\r\n");
    }
}
