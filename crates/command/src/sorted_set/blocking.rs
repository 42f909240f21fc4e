//! What BZPOPMIN and BZPOPMAX have in common.

use super::pop::{Pop, pop};
use crate::blocking::timeout;
use crate::{Ctx, Failure, Reply};
use rufous_base::Args;

pub(super) fn run(
    ctx: &mut Ctx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    from_top: bool,
) -> Result<(), Failure> {
    let keys = 1..args.len() - 1;
    let timeout_us = timeout(ctx, args.get(args.len() - 1))?;
    let what = Pop {
        from_top,
        most: 1,
        nested: false,
    };
    for at in keys.clone() {
        let name = args.get(at);
        let key = ctx.key(name);
        let taken = pop(ctx, key, what, reply, |reply, _| {
            reply.array(3);
            reply.bulk(name);
        })?;
        if taken > 0 {
            return Ok(());
        }
    }
    reply.null_array();
    ctx.wait(keys, timeout_us);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    the_first_that_has_any: "
        ZADD z 1 a 2 b 3 c => :3
        BZPOPMIN none z 0 => *3 'z' 'a' '1'
        resp3: BZPOPMAX z 0 => *3 'z' 'c' ,3
        BZPOPMAX none 0 => _
        BZPOPMAX z -1 => -ERR timeout is negative
    "
}
