//! INCR: adds one to a number.

use super::counter;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Adds one to the integer at a key; a missing key counts as 0.
    INCR = run: "incr", syntax "key", arity 2, group String, since "1.0.0",
    flags WRITE | DENYOOM | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    counter::add(ctx, args.get(1), 1, reply)
}

#[cfg(test)]
crate::testing::transcripts! {
    counts_and_keeps_the_expiry: "
        INCR n => :1
        SET n 9 PX 100 => +OK
        INCR n => :10
        INCR n => :11
        after 99 ms: GET n => '11'
        after 1 ms: INCR n => :1
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn refuses_what_is_no_integer() {
        let mut rig = Rig::new();
        for bad in [
            "",
            "x",
            "1.5",
            " 1",
            "1 ",
            "01",
            "+1",
            "-0",
            "9223372036854775808",
        ] {
            rig.run(&[b"SET", b"n", bad.as_bytes()]);
            rig.check("INCR n", "-ERR value is not an integer or out of range");
            assert_eq!(
                rig.run(&[b"GETRANGE", b"n", b"0", b"-1"]),
                rig.run(&[b"GET", b"n"])
            );
        }
        rig.check("SET n 9223372036854775807", "+OK");
        rig.check("INCR n", "-ERR increment or decrement would overflow");
        rig.check("GET n", "'9223372036854775807'");
    }
}
