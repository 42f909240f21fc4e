//! SETNX: gives a key a value if it has none.

use super::set::new_value;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_kernel::shard::ExpirySetting;

command! {
    /// Sets the string at a key if there is no such key yet.
    SETNX = run: "setnx", syntax "key value", arity 3, group String, since "1.0.0",
    flags WRITE | DENYOOM | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, mut args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let big = args.take_big(2);
    let key = ctx.first_key(args.get(1));
    let absent = !ctx.shard.contains(ctx.db, key, ctx.now);
    if absent {
        let value = new_value(big, args.get(2));
        ctx.shard
            .set(ctx.db, key, value, ExpirySetting::Clear, ctx.now);
    }
    reply.integer(absent.into());
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn only_the_first_wins() {
        let mut rig = Rig::new();
        rig.check("SETNX k a", ":1\r\n");
        rig.check("SETNX k b", ":0\r\n");
        rig.check("GET k", "$1\r\na\r\n");
        rig.check("SET k c PX 5", "+OK\r\n");
        rig.advance_ms(5).check("SETNX k d", ":1\r\n");
        rig.advance_ms(5).check("GET k", "$1\r\nd\r\n");
    }
}
