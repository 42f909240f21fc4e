//! LSET: puts another element at an index.

use crate::options::integer;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::list::{List, Op, Reply as Answer};
use rufous_kernel::shard::Editor;

command! {
    /// Puts an element in the place of the one at an index of a list.
    LSET = run: "lset", syntax "key index element", arity 4, group List, since "1.0.0",
    flags WRITE | DENYOOM, complexity "O(log N) with N elements in the list", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let change = |editor: &mut Editor<'_, List>| {
        if editor.view().is_empty() {
            return Err(Failure::NO_SUCH_KEY);
        }
        let index = integer(args.get(2))?;
        let element = args.get(3);
        match editor.apply(&Op::Set { index, element }) {
            Answer::OutOfRange => Err(Failure::from("ERR index out of range")),
            _ => Ok(()),
        }
    };
    ctx.shard
        .update::<List, _>(ctx.db, key, ctx.now, change)??;
    reply.ok();
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn replaces_what_is_there() {
        let mut rig = Rig::new();
        rig.check("LSET k 0 a", "-ERR no such key\r\n");
        rig.check("LSET k x a", "-ERR no such key\r\n");
        rig.check("RPUSH k a b c", ":3\r\n");
        rig.check("LSET k 1 longer", "+OK\r\n");
        rig.check("LSET k -1 \"\"", "+OK\r\n");
        rig.check(
            "LRANGE k 0 -1",
            "*3\r\n$1\r\na\r\n$6\r\nlonger\r\n$0\r\n\r\n",
        );
        rig.check("LSET k 3 x", "-ERR index out of range\r\n");
        rig.check("LSET k -4 x", "-ERR index out of range\r\n");
        rig.check(
            "LSET k x x",
            "-ERR value is not an integer or out of range\r\n",
        );
    }
}
