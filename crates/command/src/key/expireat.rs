//! EXPIREAT: sets when a key expires, in seconds of Unix time.

use super::expire::set_deadline;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::expire::{ExpireBase, ExpireUnit};

command! {
    /// Sets when a key expires, in seconds of Unix time.
    EXPIREAT = run: "expireat", syntax "key unix-time-seconds [NX | XX | GT | LT]", arity -3,
    group Generic, since "1.2.0", flags WRITE | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let time = (ExpireUnit::Seconds, ExpireBase::Absolute);
    set_deadline(ctx, &args, reply, time, "expireat")
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn a_key_lives_until_then() {
        let mut rig = Rig::new();
        rig.check("SET k v", "+OK\r\n");
        rig.check("EXPIREAT k 1700000010", ":1\r\n");
        rig.check("PTTL k", ":10000\r\n");
        rig.check("EXPIREAT k 1700000005 GT", ":0\r\n");
        rig.check(
            "EXPIREAT k 99999999999999999",
            "-ERR invalid expire time in 'expireat' command\r\n",
        );
        rig.check("EXPIREAT k 1700000000", ":1\r\n");
        rig.check("EXISTS k", ":0\r\n");
    }
}
