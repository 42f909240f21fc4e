//! GETDEL: returns a value and removes its key.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the string at a key and removes the key.
    GETDEL = run: "getdel", syntax "key", arity 2, group String, since "6.2.0", flags WRITE | FAST,
    complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    match ctx.shard.peek(ctx.db, key, ctx.now)? {
        Some(value) => reply.value(value),
        None => {
            reply.null();
            return Ok(());
        }
    }
    ctx.shard.remove(ctx.db, key, ctx.now);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn reads_once() {
        let mut rig = Rig::new();
        rig.check("SET k v", "+OK\r\n");
        rig.check("GETDEL k", "$1\r\nv\r\n");
        rig.check("GETDEL k", "$-1\r\n");
        rig.check("GET k", "$-1\r\n");
        rig.check("SET k v PX 5", "+OK\r\n");
        rig.advance_ms(5).check("GETDEL k", "$-1\r\n");
    }
}
