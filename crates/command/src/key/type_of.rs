//! TYPE: what kind of value a key holds.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_kernel::shard::Any;

command! {
    /// Returns the type of the value stored at a key.
    TYPE = run: "type", syntax "key", arity 2, group Generic, since "1.0.0", flags READONLY | FAST,
    complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let value = ctx.shard.look(ctx.db, key, ctx.now);
    reply.simple(value.map_or("none", Any::type_name));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn a_string_or_none() {
        let mut rig = Rig::new();
        rig.check("TYPE k", "+none");
        rig.check("SET k 1", "+OK");
        rig.check("TYPE k", "+string");
        rig.run(&[b"SET", b"k", &[b'x'; 100_000]]);
        rig.check("TYPE k", "+string");
    }
}
