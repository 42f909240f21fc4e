//! RPOPLPUSH: moves the last element of a list to the front of another.

use super::{End, transfer};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Takes the last element of a list, puts it at the front of another, and returns it.
    RPOPLPUSH = run: "rpoplpush", syntax "source destination", arity 3, group List, since "1.2.0",
    flags WRITE | DENYOOM, complexity "O(1)", keys Keys::FIRST_TWO,
}

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
        rig.check("RPOPLPUSH a b", "$-1");
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
        rig.check("EXISTS a", ":0");
        rig.check("LINDEX b 0", "'0'");
        rig.check("RPOPLPUSH b b", "'299'");
        rig.check("LINDEX b 1", "'0'");
        rig.check("LLEN b", ":300");
    }
}
