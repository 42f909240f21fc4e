//! RENAME: gives a key another name, and replaces the key that had it.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_kernel::shard::{DbKey, move_shown};

command! {
    /// Renames a key, replacing the destination if it exists.
    RENAME = run: "rename", syntax "key newkey", arity 3, group Generic, since "1.0.0",
    flags WRITE, complexity "O(1)", keys Keys::FIRST_TWO,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let (from, to) = (ctx.first_key(args.get(1)), ctx.key(args.get(2)));
    let is_lattice = |key| ctx.shard.lattice().writes(key);
    // A key renamed to itself ends where it was.
    let is_there = if is_lattice(from) || is_lattice(to) {
        let [from, to] = [from, to].map(|key| DbKey { db: ctx.db, key });
        move_shown(ctx.shard, from, to, ctx.now)
    } else {
        ctx.shard.rename((ctx.db, from), (ctx.db, to), ctx.now)
    };
    if !is_there {
        return Err(Failure::NO_SUCH_KEY);
    }
    reply.ok();
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    value_and_expiry_move: "
        RENAME a b => -ERR no such key
        RENAME a a => -ERR no such key
        SET a 1 PX 1000 => +OK
        SET b 2 => +OK
        RENAME a b => +OK
        GET a => $-1
        GET b => '1'
        PTTL b => :1000
        RENAME b b => +OK
        PTTL b => :1000
    "

    the_expiry_of_the_destination_is_gone: "
        SET a 1 => +OK
        SET b 2 PX 5 => +OK
        RENAME a b => +OK
        after 10 ms: GET b => '1'
        TTL b => :-1
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn large_values_move_too() {
        let mut rig = Rig::new();
        let large = vec![b'x'; 300_000];
        rig.run(&[b"SET", b"a", &large]);
        rig.check("RENAME a b", "+OK");
        let reply = rig.run(&[b"GET", b"b"]);
        assert_eq!(reply[9..reply.len() - 2], large);
    }
}
