//! GETSET: gives a key a value and returns the old one.

use super::set::new_value;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_kernel::shard::ExpirySetting;

command! {
    /// Sets the string at a key and returns the one it replaces; the expiry is lost.
    GETSET = run: "getset", syntax "key value", arity 3, group String, since "1.0.0",
    flags WRITE | DENYOOM | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, mut args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let big = args.take_big(2);
    let key = ctx.first_key(args.get(1));
    match ctx.shard.peek(ctx.db, key, ctx.now)? {
        Some(old) => reply.value(old),
        None => reply.null(),
    }
    let value = new_value(big, args.get(2));
    ctx.shard
        .set(ctx.db, key, value, ExpirySetting::Clear, ctx.now);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    swaps_and_clears_the_expiry: "
        GETSET k a => $-1
        SET k b PX 10 => +OK
        GETSET k c => 'b'
        after 100 ms: GET k => 'c'
        resp3: GETSET none a => _
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn the_old_value_is_sent_though_it_is_gone() {
        let mut rig = Rig::new();
        let big = vec![b'x'; 200_000];
        rig.run(&[b"SET", b"k", &big]);
        let old = rig.run(&[b"GET", b"k"]);
        assert_eq!(rig.run(&[b"GETSET", b"k", b"small"]), old);
        rig.check("GET k", "'small'");
    }
}
