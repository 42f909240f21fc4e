//! RENAME: gives a key another name, and replaces the key that had it.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Renames a key, replacing the destination if it exists.
    RENAME = run: "rename", syntax "key newkey", arity 3, group Generic, since "1.0.0",
    flags WRITE, complexity "O(1)", keys Keys::FIRST_TWO,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let (from, to) = (ctx.first_key(args.get(1)), ctx.key(args.get(2)));
    // A key renamed to itself ends where it was.
    if !ctx.shard.rename((ctx.db, from), (ctx.db, to), ctx.now) {
        return Err(Failure::NO_SUCH_KEY);
    }
    reply.ok();
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn value_and_expiry_move() {
        let mut rig = Rig::new();
        rig.check("RENAME a b", "-ERR no such key\r\n");
        rig.check("RENAME a a", "-ERR no such key\r\n");
        rig.check("SET a 1 PX 1000", "+OK\r\n");
        rig.check("SET b 2", "+OK\r\n");
        rig.check("RENAME a b", "+OK\r\n");
        rig.check("GET a", "$-1\r\n");
        rig.check("GET b", "$1\r\n1\r\n");
        rig.check("PTTL b", ":1000\r\n");
        rig.check("RENAME b b", "+OK\r\n");
        rig.check("PTTL b", ":1000\r\n");
    }

    #[test]
    fn the_expiry_of_the_destination_is_gone() {
        let mut rig = Rig::new();
        rig.check("SET a 1", "+OK\r\n");
        rig.check("SET b 2 PX 5", "+OK\r\n");
        rig.check("RENAME a b", "+OK\r\n");
        rig.advance_ms(10).check("GET b", "$1\r\n1\r\n");
        rig.check("TTL b", ":-1\r\n");
    }

    #[test]
    fn large_values_move_too() {
        let mut rig = Rig::new();
        let large = vec![b'x'; 300_000];
        rig.run(&[b"SET", b"a", &large]);
        rig.check("RENAME a b", "+OK\r\n");
        let reply = rig.run(&[b"GET", b"b"]);
        assert_eq!(reply[9..reply.len() - 2], large);
    }
}
