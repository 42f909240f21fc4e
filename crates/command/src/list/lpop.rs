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
crate::testing::transcripts! {
    one_or_several: "
        RPUSH k a b c d e => :5
        LPOP k => 'a'
        LPOP k 2 => *2 'b' 'c'
        LPOP k 0 => *0
        LPOP k 10 => *2 'd' 'e'
        EXISTS k => :0
        LPOP k => $-1
        LPOP k 1 => *-1
        resp3: LPOP k 1 => _
    "

    refusals: "
        LPOP k -1 => -ERR value is out of range, must be positive
        LPOP k x => -ERR value is out of range, must be positive
        LPOP k 1 2 => -ERR wrong number of arguments for 'lpop' command
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn large_lists_too() {
        let mut rig = Rig::new();
        for n in 0..1000 {
            rig.run(&[b"RPUSH", b"k", n.to_string().as_bytes()]);
        }
        rig.check("LPOP k", "'0'");
        rig.run(&[b"LPOP", b"k", b"900"]);
        rig.check("LRANGE k 0 0", "*1 '901'");
        rig.check("LLEN k", ":99");
    }
}
