//! LPUSH: puts elements at the front of a list.

use super::ends::{self, End};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Puts elements at the front of a list, one after the other, creating the list where it is
    /// missing, and returns its length.
    LPUSH = run: "lpush", syntax "key element [element ...]", arity -3, group List, since "1.0.0",
    flags WRITE | DENYOOM | FAST, complexity "O(1) for each element", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    ends::push(ctx, &args, End::Left, false, reply)
}

#[cfg(test)]
crate::testing::transcripts! {
    the_last_given_is_first: "
        LPUSH k a => :1
        LPUSH k b c => :3
        LRANGE k 0 -1 => *3 'c' 'b' 'a'
        TYPE k => +list
    "

    other_types_are_refused: "
        SET k v => +OK
        LPUSH k a => -WRONGTYPE Operation against a key holding the wrong kind of value
        GET k => 'v'
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn grows_from_a_record_to_a_large_list() {
        let mut rig = Rig::new();
        for n in 0..128 {
            rig.check(&format!("LPUSH k {n}"), &format!(":{}\r\n", n + 1));
        }
        rig.check("object|encoding ENCODING k", "'listpack'");
        rig.check("LPUSH k x", ":129");
        rig.check("object|encoding ENCODING k", "'quicklist'");
        rig.check("LINDEX k 0", "'x'");
        rig.check("LINDEX k -1", "'0'");
        rig.run(&[b"LPUSH", b"one", &vec![b'x'; 100_000]]);
        rig.check("object|encoding ENCODING one", "'quicklist'");
    }
}
