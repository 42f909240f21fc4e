//! PSETEX: gives a key a value and a time to live in milliseconds.

use super::set::ExpiryUnit;
use super::setex::set_expiring;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Sets the string at a key together with its time to live in milliseconds.
    PSETEX = run: "psetex", syntax "key milliseconds value", arity 4, group String, since "2.6.0",
    flags WRITE | DENYOOM, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    set_expiring(ctx, args, reply, ExpiryUnit::MILLISECONDS, "psetex")
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn lives_as_long_as_told() {
        let mut rig = Rig::new();
        rig.check("PSETEX k 20 v", "+OK\r\n");
        rig.advance_ms(19).check("GET k", "$1\r\nv\r\n");
        rig.check("PSETEX k 20 w", "+OK\r\n");
        rig.advance_ms(19).check("GET k", "$1\r\nw\r\n");
        rig.advance_ms(1).check("GET k", "$-1\r\n");
    }

    #[test]
    fn refuses_times_that_are_none() {
        let mut rig = Rig::new();
        for bad in ["0", "-1", "9223372036854775807"] {
            rig.check(
                &format!("PSETEX k {bad} v"),
                "-ERR invalid expire time in 'psetex' command\r\n",
            );
        }
        rig.check(
            "PSETEX k x v",
            "-ERR value is not an integer or out of range\r\n",
        );
        rig.check("GET k", "$-1\r\n");
    }
}
