//! What the blocking commands on lists have in common.

use super::ends::pop_one;
use super::{End, transfer};
use crate::blocking::timeout;
use crate::{Ctx, Failure, Reply};
use rufous_base::Args;

/// BLPOP and BRPOP.
pub(super) fn pop(
    ctx: &mut Ctx<'_>,
    args: &Args<'_>,
    end: End,
    reply: &mut Reply<'_>,
) -> Result<(), Failure> {
    let keys = 1..args.len() - 1;
    let timeout_us = timeout(ctx, args.get(args.len() - 1))?;
    let start = reply.out.mark();
    for at in keys.clone() {
        let key = ctx.key(args.get(at));
        reply.array(2);
        reply.bulk(key.bytes);
        if pop_one(ctx, key, end, reply)? {
            return Ok(());
        }
        reply.out.truncate(start);
    }
    reply.null_array();
    ctx.wait(keys, timeout_us);
    Ok(())
}

/// BLMOVE and BRPOPLPUSH, whose keys come first. They wait for the source.
pub(super) fn shift(
    ctx: &mut Ctx<'_>,
    args: &Args<'_>,
    (from, to): (End, End),
    seconds: &[u8],
    reply: &mut Reply<'_>,
) -> Result<(), Failure> {
    let timeout_us = timeout(ctx, seconds)?;
    let (source, target) = (ctx.first_key(args.get(1)), ctx.key(args.get(2)));
    if !transfer(ctx, (source, from), (target, to), reply)? {
        reply.null_array();
        ctx.wait(1..2, timeout_us);
    }
    Ok(())
}
