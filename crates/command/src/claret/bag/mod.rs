//! Commands on summary bags.

pub mod add;
pub mod count;
pub mod max;
pub mod mean;
pub mod min;
pub mod stats;
pub mod sum;

use crate::{Ctx, Failure, Reply};
use rufous_base::Args;
use rufous_datatype::algebra::Algebra;
use rufous_datatype::bag::{self, Bag, Op};

/// What the bag at the first argument answers.
fn ask(ctx: &mut Ctx<'_>, args: &Args<'_>, op: &Op) -> Result<bag::Reply, Failure> {
    let key = ctx.first_key(args.get(1));
    let view = ctx.shard.collection::<Bag>(ctx.db, key, ctx.now)?;
    Ok(Bag::execute(view.unwrap_or_default(), op))
}

/// Answers a number, or null where the bag is empty.
fn number(number: Option<f64>, reply: &mut Reply<'_>) {
    match number {
        Some(number) => reply.double(number),
        None => reply.null(),
    }
}

fn answer(
    ctx: &mut Ctx<'_>,
    args: &Args<'_>,
    op: &Op,
    reply: &mut Reply<'_>,
) -> Result<(), Failure> {
    match ask(ctx, args, op)? {
        bag::Reply::Count(count) => reply.integer(count as i64),
        bag::Reply::Number(it) => number(it, reply),
        bag::Reply::Added | bag::Reply::Stats(_) => reply.ok(),
    }
    Ok(())
}
