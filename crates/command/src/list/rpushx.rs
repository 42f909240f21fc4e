//! RPUSHX: puts elements at the end of a list that is there.

use super::ends::{self, End};
use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;

pub static RPUSHX: Command = Command {
    spec: Spec {
        name: "rpushx",
        summary: "Puts elements at the end of a list if there is one, and returns its length.",
        since: "2.2.0",
        group: Group::List,
        complexity: "O(1) for each element",
        arity: -3,
        flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
        keys: Keys::FIRST,
        syntax: "key element [element ...]",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    ends::push(ctx, &args, End::Right, true, reply)
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn nothing_where_there_is_no_list() {
        let mut rig = Rig::new();
        rig.check("RPUSHX k a", ":0\r\n");
        rig.check("EXISTS k", ":0\r\n");
        rig.check("RPUSH k a", ":1\r\n");
        rig.check("RPUSHX k b c", ":3\r\n");
        rig.check("RPOP k", "$1\r\nc\r\n");
    }
}
