//! RPUSH: puts elements at the end of a list.

use super::ends::{self, End};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Puts elements at the end of a list, creating the list where it is missing, and returns its
    /// length.
    RPUSH = run: "rpush", syntax "key element [element ...]", arity -3, group List, since "1.0.0",
    flags WRITE | DENYOOM | FAST, complexity "O(1) for each element", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    ends::push(ctx, &args, End::Right, false, reply)
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn in_the_order_given() {
        let mut rig = Rig::new();
        rig.check("RPUSH k a b", ":2\r\n");
        rig.check("RPUSH k \"\"", ":3\r\n");
        rig.check("LRANGE k 0 -1", "*3\r\n$1\r\na\r\n$1\r\nb\r\n$0\r\n\r\n");
    }

    #[test]
    fn keeps_the_expiry() {
        let mut rig = Rig::new();
        rig.check("RPUSH k a", ":1\r\n");
        rig.check("PEXPIRE k 10", ":1\r\n");
        rig.check("RPUSH k b", ":2\r\n");
        rig.advance_ms(10).check("LLEN k", ":0\r\n");
    }
}
