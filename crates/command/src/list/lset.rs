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
crate::testing::transcripts! {
    replaces_what_is_there: "
        LSET k 0 a => -ERR no such key
        LSET k x a => -ERR no such key
        RPUSH k a b c => :3
        LSET k 1 longer => +OK
        LSET k -1 '' => +OK
        LRANGE k 0 -1 => *3 'a' 'longer' ''
        LSET k 3 x => -ERR index out of range
        LSET k -4 x => -ERR index out of range
        LSET k x x => -ERR value is not an integer or out of range
    "
}
