//! Commands on bounded counters.

pub mod add;
pub mod bounds;
pub mod get;
pub mod incrby;
pub mod set;

use crate::{Ctx, Failure};
use rufous_base::Args;
use rufous_datatype::algebra::Algebra;
use rufous_datatype::bounded::{Bounded, Op, Reply};

/// What the counter at the first argument answers to a read.
fn ask(ctx: &mut Ctx<'_>, args: &Args<'_>, op: &Op) -> Result<Reply, Failure> {
    let key = ctx.first_key(args.get(1));
    let view = ctx.shard.collection::<Bounded>(ctx.db, key, ctx.now)?;
    Ok(Bounded::execute(view.unwrap_or_default(), op))
}

/// Changes the counter at the first argument.
fn change(ctx: &mut Ctx<'_>, args: &Args<'_>, op: &Op) -> Result<Reply, Failure> {
    let key = ctx.first_key(args.get(1));
    let change = |editor: &mut rufous_kernel::shard::Editor<'_, Bounded>| editor.apply(op);
    match ctx
        .shard
        .update::<Bounded, _>(ctx.db, key, ctx.now, change)?
    {
        Reply::Missing => Err(Failure::NO_SUCH_KEY),
        told => Ok(told),
    }
}
