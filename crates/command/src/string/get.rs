//! GET: the value of a key.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the string at a key.
    GET = run: "get", syntax "key", arity 2, group String, since "1.0.0", flags READONLY | FAST,
    complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    match ctx.shard.get(ctx.db, key, ctx.now)? {
        Some(value) => reply.value(value),
        None => reply.null(),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn a_value_or_nil() {
        let mut rig = Rig::new();
        rig.check("GET k", "$-1\r\n");
        rig.check("SET k v", "+OK\r\n");
        rig.check("GET k", "$1\r\nv\r\n");
        rig.resp3().check("GET none", "_\r\n");
    }
}
