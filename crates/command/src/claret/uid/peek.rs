//! UID.PEEK: from where on no identifier was taken.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::algebra::Algebra;
use rufous_datatype::uid::{Op, Uid};

command! {
    /// Returns a number above all identifiers that were taken, and takes none.
    PEEK = run: "uid.peek", syntax "key", arity 2, group Claret, since "7.2.0",
    flags READONLY | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let view = ctx.shard.collection::<Uid>(ctx.db, key, ctx.now)?;
    let next = view.map_or(0, |view| Uid::execute(view, &Op::Peek));
    reply.integer(i64::try_from(next).unwrap_or(i64::MAX));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    takes_none: "
        UID.PEEK k => :0
        EXISTS k => :0
        UID.NEXT k COUNT 2 => *2 :0 :1
        UID.PEEK k => :2
        UID.PEEK k => :2
    "
}
