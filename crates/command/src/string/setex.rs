//! SETEX: gives a key a value and a time to live in seconds.

use super::set::{ExpiryUnit, new_value};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_kernel::shard::ExpirySetting;

command! {
    /// Sets the string at a key together with its time to live in seconds.
    SETEX = run: "setex", syntax "key seconds value", arity 4, group String, since "2.0.0",
    flags WRITE | DENYOOM, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    set_expiring(ctx, args, reply, ExpiryUnit::SECONDS, "setex")
}

/// SETEX and PSETEX: the time comes before the value.
pub(super) fn set_expiring(
    ctx: &mut Ctx<'_>,
    mut args: Args<'_>,
    reply: &mut Reply<'_>,
    unit: ExpiryUnit,
    command: &str,
) -> Result<(), Failure> {
    let at = unit.expire_at(args.get(2), ctx.now.unix_ms(), command)?;
    let big = args.take_big(3);
    let key = ctx.first_key(args.get(1));
    let value = new_value(big, args.get(3));
    ctx.shard
        .set(ctx.db, key, value, ExpirySetting::At(at), ctx.now);
    reply.ok();
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn lives_as_long_as_told() {
        let mut rig = Rig::new();
        rig.check("SETEX k 2 v", "+OK\r\n");
        rig.advance_ms(1999).check("GET k", "$1\r\nv\r\n");
        rig.check("SETEX k 2 w", "+OK\r\n");
        rig.advance_ms(1999).check("GET k", "$1\r\nw\r\n");
        rig.advance_ms(1).check("GET k", "$-1\r\n");
    }

    #[test]
    fn refuses_times_that_are_none() {
        let mut rig = Rig::new();
        for bad in ["0", "-1", "9223372036854776"] {
            rig.check(
                &format!("SETEX k {bad} v"),
                "-ERR invalid expire time in 'setex' command\r\n",
            );
        }
        rig.check(
            "SETEX k x v",
            "-ERR value is not an integer or out of range\r\n",
        );
        rig.check("GET k", "$-1\r\n");
    }
}
