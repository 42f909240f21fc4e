//! LPOP: takes elements off the front of a list.

use super::ends::{self, End};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Takes elements off the front of a list and returns them.
    LPOP = run: "lpop", syntax "key [count]", arity -2, group List, since "1.0.0",
    flags WRITE | FAST, complexity "O(N) with N elements returned", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    ends::pop(ctx, &args, End::Left, "lpop", reply)
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn one_or_several() {
        let mut rig = Rig::new();
        rig.check("RPUSH k a b c d e", ":5\r\n");
        rig.check("LPOP k", "$1\r\na\r\n");
        rig.check("LPOP k 2", "*2\r\n$1\r\nb\r\n$1\r\nc\r\n");
        rig.check("LPOP k 0", "*0\r\n");
        rig.check("LPOP k 10", "*2\r\n$1\r\nd\r\n$1\r\ne\r\n");
        rig.check("EXISTS k", ":0\r\n");
        rig.check("LPOP k", "$-1\r\n");
        rig.check("LPOP k 1", "*-1\r\n");
        rig.resp3().check("LPOP k 1", "_\r\n");
    }

    #[test]
    fn refusals() {
        let mut rig = Rig::new();
        let positive = "-ERR value is out of range, must be positive\r\n";
        rig.check("LPOP k -1", positive);
        rig.check("LPOP k x", positive);
        rig.check(
            "LPOP k 1 2",
            "-ERR wrong number of arguments for 'lpop' command\r\n",
        );
    }

    #[test]
    fn large_lists_too() {
        let mut rig = Rig::new();
        for n in 0..1000 {
            rig.run(&[b"RPUSH", b"k", n.to_string().as_bytes()]);
        }
        rig.check("LPOP k", "$1\r\n0\r\n");
        rig.run(&[b"LPOP", b"k", b"900"]);
        rig.check("LRANGE k 0 0", "*1\r\n$3\r\n901\r\n");
        rig.check("LLEN k", ":99\r\n");
    }
}
