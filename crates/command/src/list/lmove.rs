//! LMOVE: moves an element from a list to another.

use super::{End, transfer};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Takes an element off an end of a list, puts it at an end of another, and returns it.
    LMOVE = run: "lmove", syntax "source destination LEFT | RIGHT LEFT | RIGHT", arity 5,
    group List, since "6.2.0", flags WRITE | DENYOOM, complexity "O(1)", keys Keys::FIRST_TWO,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let (from, to) = (End::parse(args.get(3))?, End::parse(args.get(4))?);
    let (source, target) = (ctx.first_key(args.get(1)), ctx.key(args.get(2)));
    if !transfer(ctx, (source, from), (target, to), reply)? {
        reply.null();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn between_any_ends() {
        let mut rig = Rig::new();
        rig.check("RPUSH a 1 2 3 4", ":4\r\n");
        rig.check("LMOVE a b LEFT LEFT", "$1\r\n1\r\n");
        rig.check("LMOVE a b left right", "$1\r\n2\r\n");
        rig.check("LMOVE a b RIGHT LEFT", "$1\r\n4\r\n");
        rig.check("LMOVE a b RIGHT RIGHT", "$1\r\n3\r\n");
        rig.check("EXISTS a", ":0\r\n");
        rig.check("LMOVE a b RIGHT RIGHT", "$-1\r\n");
        rig.check(
            "LRANGE b 0 -1",
            "*4\r\n$1\r\n4\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n",
        );
        rig.check("LMOVE b b UP RIGHT", "-ERR syntax error\r\n");
    }

    #[test]
    fn within_one_list() {
        let mut rig = Rig::new();
        rig.check("RPUSH a 1 2 3", ":3\r\n");
        rig.check("LMOVE a a LEFT RIGHT", "$1\r\n1\r\n");
        rig.check("LRANGE a 0 -1", "*3\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n1\r\n");
        rig.check("LMOVE a a LEFT LEFT", "$1\r\n2\r\n");
        rig.check("RPUSH one 1", ":1\r\n");
        rig.check("PEXPIRE one 10", ":1\r\n");
        rig.check("LMOVE one one LEFT RIGHT", "$1\r\n1\r\n");
        rig.check("PTTL one", ":10\r\n");
    }

    #[test]
    fn nothing_is_taken_where_it_cannot_be_put() {
        let mut rig = Rig::new();
        let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
        rig.check("RPUSH a 1", ":1\r\n");
        rig.check("SET s v", "+OK\r\n");
        rig.check("LMOVE a s LEFT LEFT", wrong);
        rig.check("LMOVE s a LEFT LEFT", wrong);
        rig.check("LMOVE none s LEFT LEFT", "$-1\r\n");
        rig.check("LLEN a", ":1\r\n");
    }
}
