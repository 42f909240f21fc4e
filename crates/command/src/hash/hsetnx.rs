//! HSETNX: gives a field a value if it has none.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::hash::{Hash, Op};

command! {
    /// Sets a field of a hash unless it is there; answers whether it was set.
    HSETNX = run: "hsetnx", syntax "key field value", arity 4, group Hash, since "2.0.0",
    flags WRITE | DENYOOM | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let (field, value) = (args.get(2), args.get(3));
    let new = ctx.shard.update::<Hash, _>(ctx.db, key, ctx.now, |hash| {
        hash.apply(&Op::SetNew { field, value }).is_true()
    })?;
    reply.integer(i64::from(new));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    only_once: "
        HSETNX k a 1 => :1
        HSETNX k a 2 => :0
        HGET k a => '1'
    "
}
