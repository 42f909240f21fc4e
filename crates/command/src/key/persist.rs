//! PERSIST: lets a key live for ever.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Removes the expiry of a key.
    PERSIST = run: "persist", syntax "key", arity 2, group Generic, since "2.2.0",
    flags WRITE | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let expires = matches!(ctx.shard.expire_at(ctx.db, key, ctx.now), Some(Some(_)));
    if expires {
        ctx.shard.set_expire_at(ctx.db, key, None, ctx.now);
    }
    reply.integer(i64::from(expires));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn tells_whether_there_was_an_expiry() {
        let mut rig = Rig::new();
        rig.check("PERSIST k", ":0\r\n");
        rig.check("SET k v PX 100", "+OK\r\n");
        rig.check("PERSIST k", ":1\r\n");
        rig.check("PERSIST k", ":0\r\n");
        rig.advance_ms(200).check("GET k", "$1\r\nv\r\n");
        rig.check("TTL k", ":-1\r\n");
    }
}
