//! OBJECT REFCOUNT: how many keys share the value.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the number of references to the value of a key.
    REFCOUNT = run: "object|refcount", syntax "key", arity 3, group Generic, since "2.2.3",
    flags READONLY, complexity "O(1)", keys Keys::SECOND,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(2));
    // Copies that share a large value part as soon as one changes, so that
    // to clients every key has a value of its own.
    match ctx.shard.contains(ctx.db, key, ctx.now) {
        true => reply.integer(1),
        false => reply.null(),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn each_key_has_its_own_value() {
        let mut rig = Rig::new();
        rig.check("object|refcount refcount k", "$-1");
        rig.run(&[b"SET", b"k", &[b'x'; 100_000]]);
        rig.check("COPY k l", ":1");
        rig.check("object|refcount refcount k", ":1");
    }
}
