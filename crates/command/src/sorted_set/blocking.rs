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
mod tests {
    use crate::testing::Rig;

    #[test]
    fn the_first_that_has_any() {
        let mut rig = Rig::new();
        rig.check("ZADD z 1 a 2 b 3 c", ":3\r\n");
        rig.check(
            "BZPOPMIN none z 0",
            "*3\r\n$1\r\nz\r\n$1\r\na\r\n$1\r\n1\r\n",
        );
        rig.resp3()
            .check("BZPOPMAX z 0", "*3\r\n$1\r\nz\r\n$1\r\nc\r\n,3\r\n");
        rig.check("BZPOPMAX none 0", "_\r\n");
        rig.check("BZPOPMAX z -1", "-ERR timeout is negative\r\n");
    }
}
