//! UNLINK: removes keys without waiting for their memory to be freed.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Removes keys, leaving the release of their memory to another thread.
    UNLINK = run: "unlink", syntax "key [key ...]", arity -2, group Generic, since "4.0.0",
    flags WRITE | FAST | PER_KEY | SUM,
    complexity "O(1) for each key; memory of large values is freed by another thread",
    keys Keys::ALL,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    super::del::remove(ctx, &args, reply);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn counts_the_keys_that_were_there() {
        let mut rig = Rig::new();
        rig.check("SET a 1", "+OK\r\n");
        rig.check("SET b 2", "+OK\r\n");
        rig.check("UNLINK a none b a", ":2\r\n");
        rig.check("GET a", "$-1\r\n");
        rig.check("UNLINK b", ":0\r\n");
    }

    #[test]
    fn a_key_whose_time_has_come_was_not_there() {
        let mut rig = Rig::new();
        rig.check("SET a 1 PX 5", "+OK\r\n");
        rig.advance_ms(10).check("UNLINK a", ":0\r\n");
    }
}
