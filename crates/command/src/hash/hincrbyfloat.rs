//! HINCRBYFLOAT: adds to the number in a field.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::hash::{self, Hash, Op};

command! {
    /// Adds a floating-point number to the number in a field of a hash; a missing field counts as
    /// 0.
    HINCRBYFLOAT = run: "hincrbyfloat", syntax "key field increment", arity 4, group Hash,
    since "2.6.0", flags WRITE | DENYOOM | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let by = args.get(3);
    // Before the key is accessed.
    hash::finite(by)?;
    let (key, field) = (ctx.first_key(args.get(1)), args.get(2));
    let sum = ctx.shard.update::<Hash, _>(ctx.db, key, ctx.now, |hash| {
        hash.apply(&Op::IncrementFloat { field, by })
    })?;
    if let hash::Reply::Float(sum) = sum {
        reply.bulk(&sum?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn adds_without_the_noise_of_doubles() {
        let mut rig = Rig::new();
        rig.check("HINCRBYFLOAT k a 10.5", "$4\r\n10.5\r\n");
        rig.check("HINCRBYFLOAT k a 0.1", "$4\r\n10.6\r\n");
        rig.check("HINCRBYFLOAT k a -5.6e0", "$1\r\n5\r\n");
        rig.check("HINCRBY k a 1", ":6\r\n");
    }

    #[test]
    fn refusals() {
        let mut rig = Rig::new();
        rig.check("SET s v", "+OK\r\n");
        rig.check("HINCRBYFLOAT s a x", "-ERR value is not a valid float\r\n");
        rig.check("HINCRBYFLOAT s a inf", "-ERR value is NaN or Infinity\r\n");
        rig.check(
            "HINCRBYFLOAT s a 1",
            "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
        );
        rig.check("HSET k a x", ":1\r\n");
        rig.check("HINCRBYFLOAT k a 1", "-ERR hash value is not a float\r\n");
        rig.check("HSET k a 1e4932", ":0\r\n");
        rig.check(
            "HINCRBYFLOAT k a 1e4932",
            "-ERR increment would produce NaN or Infinity\r\n",
        );
        rig.check("HGET k a", "$6\r\n1e4932\r\n");
    }
}
