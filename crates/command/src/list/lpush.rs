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
mod tests {
    use crate::testing::Rig;

    #[test]
    fn the_last_given_is_first() {
        let mut rig = Rig::new();
        rig.check("LPUSH k a", ":1\r\n");
        rig.check("LPUSH k b c", ":3\r\n");
        rig.check("LRANGE k 0 -1", "*3\r\n$1\r\nc\r\n$1\r\nb\r\n$1\r\na\r\n");
        rig.check("TYPE k", "+list\r\n");
    }

    #[test]
    fn grows_from_a_record_to_a_large_list() {
        let mut rig = Rig::new();
        for n in 0..128 {
            rig.check(&format!("LPUSH k {n}"), &format!(":{}\r\n", n + 1));
        }
        rig.check("object|encoding ENCODING k", "$8\r\nlistpack\r\n");
        rig.check("LPUSH k x", ":129\r\n");
        rig.check("object|encoding ENCODING k", "$9\r\nquicklist\r\n");
        rig.check("LINDEX k 0", "$1\r\nx\r\n");
        rig.check("LINDEX k -1", "$1\r\n0\r\n");
        rig.run(&[b"LPUSH", b"one", &vec![b'x'; 100_000]]);
        rig.check("object|encoding ENCODING one", "$9\r\nquicklist\r\n");
    }

    #[test]
    fn other_types_are_refused() {
        let mut rig = Rig::new();
        rig.check("SET k v", "+OK\r\n");
        rig.check(
            "LPUSH k a",
            "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
        );
        rig.check("GET k", "$1\r\nv\r\n");
    }
}
