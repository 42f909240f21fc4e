//! HINCRBY: adds to the integer in a field.

use crate::options;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::hash::{self, Hash, Op};

command! {
    /// Adds to the integer in a field of a hash; a missing field counts as 0.
    HINCRBY = run: "hincrby", syntax "key field increment", arity 4, group Hash, since "2.0.0",
    flags WRITE | DENYOOM | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let by = options::integer(args.get(3))?;
    let (key, field) = (ctx.first_key(args.get(1)), args.get(2));
    let sum = ctx.shard.update::<Hash, _>(ctx.db, key, ctx.now, |hash| {
        hash.apply(&Op::Increment { field, by })
    })?;
    if let hash::Reply::Integer(sum) = sum {
        reply.integer(sum?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn counts() {
        let mut rig = Rig::new();
        rig.check("HINCRBY k a 5", ":5\r\n");
        rig.check("HINCRBY k a -7", ":-2\r\n");
        rig.check("HGET k a", "$2\r\n-2\r\n");
        rig.check(
            "HINCRBY k a 9223372036854775807",
            ":9223372036854775805\r\n",
        );
        rig.check(
            "HINCRBY k a 3",
            "-ERR increment or decrement would overflow\r\n",
        );
    }

    #[test]
    fn refusals() {
        let mut rig = Rig::new();
        rig.check(
            "HINCRBY k a x",
            "-ERR value is not an integer or out of range\r\n",
        );
        rig.check("EXISTS k", ":0\r\n");
        rig.check("HSET k a 01", ":1\r\n");
        rig.check("HINCRBY k a 1", "-ERR hash value is not an integer\r\n");
        rig.check("HGET k a", "$2\r\n01\r\n");
        rig.check("SET s v", "+OK\r\n");
        rig.check(
            "HINCRBY s a 1",
            "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
        );
    }
}
