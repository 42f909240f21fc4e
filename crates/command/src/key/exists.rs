//! EXISTS: how many of the keys named are there.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Tells how many of the given keys exist; a key given twice counts twice.
    EXISTS = run: "exists", syntax "key [key ...]", arity -2, group Generic, since "1.0.0",
    flags READONLY | FAST | PER_KEY | SUM, complexity "O(N) where N is the number of keys", keys Keys::ALL,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let mut present = 0;
    for (index, name) in args.iter_from(1).enumerate() {
        let key = if index == 0 {
            ctx.first_key(name)
        } else {
            ctx.key(name)
        };
        present += usize::from(ctx.shard.contains(ctx.db, key, ctx.now));
    }
    reply.count(present);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn repeats_count_and_expired_keys_do_not() {
        let mut rig = Rig::new();
        rig.check("SET a 1", "+OK\r\n");
        rig.check("SET b 1 PX 5", "+OK\r\n");
        rig.check("EXISTS a b a none", ":3\r\n");
        rig.advance_ms(10).check("EXISTS a b a none", ":2\r\n");
        rig.check("EXISTS none", ":0\r\n");
    }

    #[test]
    fn asking_is_not_an_access() {
        let mut rig = Rig::new();
        rig.check("SET a 1", "+OK\r\n");
        rig.advance_ms(30_000).check("EXISTS a", ":1\r\n");
        rig.check("object|idletime idletime a", ":30\r\n");
    }
}
