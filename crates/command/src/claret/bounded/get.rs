//! BCOUNT.GET: the value.

use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;
use rufous_datatype::bounded::{self, Op};

pub static GET: Command = Command {
    spec: Spec {
        name: "bcount.get",
        summary: "Returns the value of a bounded counter; null where there is none.",
        since: "7.2.0",
        group: Group::Claret,
        complexity: "O(1)",
        arity: 2,
        flags: Flags::READONLY.or(Flags::FAST),
        keys: Keys::FIRST,
        syntax: "key",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    match super::ask(ctx, &args, &Op::Get)? {
        bounded::Reply::Value(value) => reply.integer(value),
        _ => reply.null(),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn null_where_there_is_none() {
        let mut rig = Rig::new();
        rig.check("BCOUNT.GET k", "$-1\r\n");
        rig.check("BCOUNT.SET k 2", "+OK\r\n");
        rig.check("BCOUNT.GET k", ":2\r\n");
    }
}
