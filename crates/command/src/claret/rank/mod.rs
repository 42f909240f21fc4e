//! Commands on rankings of the highest members.

pub mod add;
pub mod len;
pub mod max;
pub mod position;
pub mod range;
pub mod score;

use crate::{Ctx, Failure};
use rufous_base::Args;
use rufous_datatype::top_k::{TopK, View};

/// The ranking at the first argument.
fn ranking<'a>(ctx: &'a mut Ctx<'_>, args: &Args<'_>) -> Result<Option<View<'a>>, Failure> {
    let key = ctx.first_key(args.get(1));
    Ok(ctx.shard.collection::<TopK>(ctx.db, key, ctx.now)?)
}
