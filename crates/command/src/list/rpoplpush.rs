//! RPOPLPUSH: moves the last element of a list to the front of another.

use super::{End, transfer};
use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;

pub static RPOPLPUSH: Command = Command {
    spec: Spec {
        name: "rpoplpush",
        summary: "Takes the last element of a list, puts it at the front of another, and returns it.",
        since: "1.2.0",
        group: Group::List,
        complexity: "O(1)",
        arity: 3,
        flags: Flags::WRITE.or(Flags::DENYOOM),
        keys: Keys::Range {
            first: 1,
            last: 2,
            step: 1,
        },
        syntax: "source destination",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let (source, target) = (ctx.first_key(args.get(1)), ctx.key(args.get(2)));
    if !transfer(ctx, (source, End::Right), (target, End::Left), reply)? {
        reply.null();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn of_small_and_large_lists() {
        let mut rig = Rig::new();
        rig.check("RPOPLPUSH a b", "$-1\r\n");
        for n in 0..300 {
            rig.run(&[b"RPUSH", b"a", n.to_string().as_bytes()]);
        }
        for n in (0..300).rev() {
            let reply = rig.run(&[b"RPOPLPUSH", b"a", b"b"]);
            assert_eq!(
                reply,
                format!("${}\r\n{n}\r\n", n.to_string().len()).into_bytes()
            );
        }
        rig.check("EXISTS a", ":0\r\n");
        rig.check("LINDEX b 0", "$1\r\n0\r\n");
        rig.check("RPOPLPUSH b b", "$3\r\n299\r\n");
        rig.check("LINDEX b 1", "$1\r\n0\r\n");
        rig.check("LLEN b", ":300\r\n");
    }
}
