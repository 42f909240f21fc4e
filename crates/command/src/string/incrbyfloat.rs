//! INCRBYFLOAT: adds to a number that need not be whole.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::float;
use rufous_kernel::shard::{ExpirySetting, NewValue, Value};

command! {
    /// Adds a floating-point number to the number at a key; a missing key counts as 0.
    INCRBYFLOAT = run: "incrbyfloat", syntax "key increment", arity 3, group String, since "2.6.0",
    flags WRITE | DENYOOM | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let added = ctx.shard.increment_float(ctx.db, key, args.get(2), ctx.now);
    if let Some(sum) = added {
        reply.bulk(&sum?);
        return Ok(());
    }
    let old = ctx.shard.peek(ctx.db, key, ctx.now)?.map(Value::bytes);
    let sum = float::increment(old, args.get(2))?;
    reply.bulk(&sum);
    let value = NewValue::Copy(&sum);
    ctx.shard
        .set(ctx.db, key, value, ExpirySetting::Keep, ctx.now);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn adds_without_the_noise_of_doubles() {
        let mut rig = Rig::new();
        rig.check("INCRBYFLOAT k 0.1", "$3\r\n0.1\r\n");
        rig.check("INCRBYFLOAT k 0.2", "$3\r\n0.3\r\n");
        rig.check("INCRBYFLOAT k -0.3", "$1\r\n0\r\n");
        rig.check("INCRBYFLOAT k 5.0e3", "$4\r\n5000\r\n");
        // 64 bits of mantissa are not enough for this one.
        rig.check("INCRBYFLOAT k 0.3", "$22\r\n5000.29999999999999982\r\n");
        rig.check("GET k", "$22\r\n5000.29999999999999982\r\n");
    }

    #[test]
    fn keeps_the_expiry() {
        let mut rig = Rig::new();
        rig.check("SET k 1 PX 10", "+OK\r\n");
        rig.check("INCRBYFLOAT k 1.5", "$3\r\n2.5\r\n");
        rig.advance_ms(10).check("GET k", "$-1\r\n");
    }

    #[test]
    fn refusals() {
        let mut rig = Rig::new();
        let no_float = "-ERR value is not a valid float\r\n";
        rig.check("INCRBYFLOAT k x", no_float);
        rig.check("INCRBYFLOAT k nan", no_float);
        rig.check("INCRBYFLOAT k \"\"", no_float);
        rig.check("GET k", "$-1\r\n");
        rig.check("SET k x", "+OK\r\n");
        rig.check("INCRBYFLOAT k 1", no_float);
        rig.check("SET k 1", "+OK\r\n");
        rig.check(
            "INCRBYFLOAT k inf",
            "-ERR increment would produce NaN or Infinity\r\n",
        );
        rig.check("GET k", "$1\r\n1\r\n");
    }
}
