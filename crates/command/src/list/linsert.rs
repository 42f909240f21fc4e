//! LINSERT: puts an element next to another.

use crate::options::is;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::list::{List, Op, Reply as Answer, Side};
use rufous_kernel::shard::Editor;

command! {
    /// Puts an element before or after the first one of a list that is equal to the pivot, and
    /// returns the new length, or -1 where there is no such pivot.
    LINSERT = run: "linsert", syntax "key BEFORE | AFTER pivot element", arity 5, group List,
    since "2.2.0", flags WRITE | DENYOOM | SLOW,
    complexity "O(N) with N elements before the pivot", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let (pivot, element) = (args.get(3), args.get(4));
    let side = match args.get(2) {
        word if is(word, "BEFORE") => Side::Before,
        word if is(word, "AFTER") => Side::After,
        _ => return Err(Failure::SYNTAX),
    };
    let op = Op::Insert {
        side,
        pivot,
        element,
    };
    let key = ctx.first_key(args.get(1));
    let change = |editor: &mut Editor<'_, List>| editor.apply(&op);
    match ctx.shard.update::<List, _>(ctx.db, key, ctx.now, change)? {
        Answer::Length(len) => reply.count(len),
        Answer::NoPivot => reply.integer(-1),
        _ => reply.integer(0),
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    beside_the_first_pivot: "
        LINSERT k BEFORE a b => :0
        RPUSH k a b a => :3
        LINSERT k before a x => :4
        LINSERT k AFTER a y => :5
        LINSERT k AFTER none z => :-1
        LRANGE k 0 -1 => *5 'x' 'a' 'y' 'b' 'a'
        LINSERT k BESIDE a z => -ERR syntax error
    "
}
