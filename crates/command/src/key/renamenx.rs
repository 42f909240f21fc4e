//! RENAMENX: gives a key another name, unless that is taken.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Renames a key only if the new name is not in use.
    RENAMENX = run: "renamenx", syntax "key newkey", arity 3, group Generic, since "1.0.0",
    flags WRITE | FAST, complexity "O(1)", keys Keys::FIRST_TWO,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let (from, to) = (ctx.first_key(args.get(1)), ctx.key(args.get(2)));
    if !ctx.shard.contains(ctx.db, from, ctx.now) {
        return Err(Failure::NO_SUCH_KEY);
    }
    let free = !ctx.shard.contains(ctx.db, to, ctx.now);
    if free {
        ctx.shard.rename((ctx.db, from), (ctx.db, to), ctx.now);
    }
    reply.integer(i64::from(free));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn only_to_a_free_name() {
        let mut rig = Rig::new();
        rig.check("RENAMENX a b", "-ERR no such key\r\n");
        rig.check("SET a 1 PX 1000", "+OK\r\n");
        rig.check("SET b 2 PX 5", "+OK\r\n");
        rig.check("RENAMENX a b", ":0\r\n");
        rig.check("RENAMENX a a", ":0\r\n");
        rig.advance_ms(10).check("RENAMENX a b", ":1\r\n");
        rig.check("GET b", "$1\r\n1\r\n");
        rig.check("PTTL b", ":990\r\n");
        rig.check("EXISTS a", ":0\r\n");
    }
}
