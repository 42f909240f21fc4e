//! RPOP: takes elements off the end of a list.

use super::ends::{self, End};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Takes elements off the end of a list and returns them.
    RPOP = run: "rpop", syntax "key [count]", arity -2, group List, since "1.0.0",
    flags WRITE | FAST, complexity "O(N) with N elements returned", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    ends::pop(ctx, &args, End::Right, "rpop", reply)
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn one_or_several() {
        let mut rig = Rig::new();
        rig.check("RPUSH k a b c d e", ":5\r\n");
        rig.check("RPOP k", "$1\r\ne\r\n");
        rig.check("RPOP k 2", "*2\r\n$1\r\nd\r\n$1\r\nc\r\n");
        rig.check("RPOP k 0", "*0\r\n");
        rig.check("RPOP k 10", "*2\r\n$1\r\nb\r\n$1\r\na\r\n");
        rig.check("EXISTS k", ":0\r\n");
        rig.check("RPOP k", "$-1\r\n");
        rig.check("RPOP k 1", "*-1\r\n");
        rig.resp3().check("RPOP k 1", "_\r\n");
    }

    #[test]
    fn refusals() {
        let mut rig = Rig::new();
        let positive = "-ERR value is out of range, must be positive\r\n";
        rig.check("RPOP k -1", positive);
        rig.check("RPOP k x", positive);
        rig.check(
            "RPOP k 1 2",
            "-ERR wrong number of arguments for 'rpop' command\r\n",
        );
    }
}
