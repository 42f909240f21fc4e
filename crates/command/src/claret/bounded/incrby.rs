//! BCOUNT.INCRBY: adds within the bounds, and tells the new value.

use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec, options};
use rufous_base::Args;
use rufous_datatype::bounded::{self, Op};

pub static INCRBY: Command = Command {
    spec: Spec {
        name: "bcount.incrby",
        summary: "Adds to a bounded counter and returns its new value; returns null, and changes nothing, where it would leave its bounds.",
        since: "7.2.0",
        group: Group::Claret,
        complexity: "O(1)",
        arity: 3,
        flags: Flags::WRITE.or(Flags::FAST),
        keys: Keys::FIRST,
        syntax: "key increment",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let by = options::integer(args.get(2))?;
    match super::change(ctx, &args, &Op::Incr(by))? {
        bounded::Reply::Value(value) => reply.integer(value),
        _ => reply.null(),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn the_new_value_or_null() {
        let mut rig = Rig::new();
        rig.check("BCOUNT.INCRBY k 1", "-ERR no such key\r\n");
        rig.check("BCOUNT.SET k 2 MIN -1 MAX 3", "+OK\r\n");
        rig.check("BCOUNT.INCRBY k -3", ":-1\r\n");
        rig.check("BCOUNT.INCRBY k -1", "$-1\r\n");
        rig.check("BCOUNT.INCRBY k 4", ":3\r\n");
        rig.check("BCOUNT.INCRBY k 1", "$-1\r\n");
        rig.check("BCOUNT.GET k", ":3\r\n");
    }
}
