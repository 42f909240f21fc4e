//! TOUCH: accesses keys without reading them.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Marks keys as just accessed and tells how many of them exist.
    TOUCH = run: "touch", syntax "key [key ...]", arity -2, group Generic, since "3.2.1",
    flags READONLY | FAST | PER_KEY | SUM, complexity "O(N) where N is the number of keys", keys Keys::ALL,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    // Also for clients whose other commands leave no trace (CLIENT NO-TOUCH);
    // the setting is renewed before every command.
    ctx.shard.set_touch(true);
    let mut present = 0;
    for (index, name) in args.iter_from(1).enumerate() {
        let key = if index == 0 {
            ctx.first_key(name)
        } else {
            ctx.key(name)
        };
        present += usize::from(ctx.shard.read(ctx.db, key, ctx.now).is_some());
    }
    reply.count(present);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    makes_keys_recent: "
        SET a 1 => +OK
        SET b 1 => +OK
        after 30000 ms: TOUCH a none a => :2
        object|idletime idletime a => :0
        object|idletime idletime b => :30
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn even_where_reads_leave_no_trace() {
        let mut rig = Rig::new();
        rig.check("SET a 1", "+OK");
        rig.shard.set_touch(false);
        rig.advance_ms(30_000).check("TOUCH a", ":1");
        rig.check("object|idletime idletime a", ":0");
    }
}
