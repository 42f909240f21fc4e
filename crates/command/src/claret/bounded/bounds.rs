//! BCOUNT.BOUNDS: the least and the greatest value.

use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;
use rufous_datatype::bounded::{self, Op};

pub static BOUNDS: Command = Command {
    spec: Spec {
        name: "bcount.bounds",
        summary: "Returns the least and the greatest value that a bounded counter may have; null where there is none.",
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
    match super::ask(ctx, &args, &Op::Bounds)? {
        bounded::Reply::Bounds(min, max) => {
            reply.array(2);
            reply.integer(min);
            reply.integer(max);
        }
        _ => reply.null_array(),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn null_where_there_is_none() {
        let mut rig = Rig::new();
        rig.check("BCOUNT.BOUNDS k", "*-1\r\n");
        rig.check("BCOUNT.SET k 2 MAX 4", "+OK\r\n");
        rig.check("BCOUNT.BOUNDS k", "*2\r\n:0\r\n:4\r\n");
    }
}
