//! MEMORY USAGE: how much memory a key takes. The container is with the
//! server's own commands.

use crate::options::{self, is};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Estimates the bytes that a key and its value take.
    MEMORY_USAGE = run: "memory|usage", syntax "key [SAMPLES count]", arity -3, group Generic,
    since "4.0.0", flags READONLY, complexity "O(1)", keys Keys::SECOND,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let mut at = 3;
    while at < args.len() {
        if !is(args.get(at), "SAMPLES") || at + 1 == args.len() {
            return Err(Failure::SYNTAX);
        }
        // Strings have nothing to sample; the count is only checked.
        if options::integer(args.get(at + 1))? < 0 {
            return Err(Failure::SYNTAX);
        }
        at += 2;
    }
    let key = ctx.first_key(args.get(2));
    match ctx.shard.memory_of(ctx.db, key, ctx.now) {
        Some(bytes) => reply.count(bytes),
        None => reply.null(),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    fn usage(rig: &mut Rig) -> usize {
        let reply = rig.run(&[b"memory|usage", b"usage", b"k"]);
        let text = String::from_utf8(reply).expect("text");
        text[1..].trim_end().parse().expect("a number")
    }

    #[test]
    fn no_less_than_what_is_stored() {
        let mut rig = Rig::new();
        rig.check("memory|usage usage k", "$-1");
        let mut last = 0;
        for len in [10, 1_000, 1_000_000] {
            rig.run(&[b"SET", b"k", &vec![b'x'; len]]);
            let bytes = usage(&mut rig);
            assert!(bytes > len && bytes < 2 * len + 100, "{bytes} for {len}");
            assert!(bytes > last);
            last = bytes;
        }
    }

    #[test]
    fn samples_are_accepted() {
        let mut rig = Rig::new();
        rig.check("SET k v", "+OK");
        let bytes = usage(&mut rig);
        rig.check("memory|usage usage k samples 0", &format!(":{bytes}\r\n"));
        rig.check("memory|usage usage k SAMPLES", "-ERR syntax error");
        rig.check("memory|usage usage k SAMPLES -1", "-ERR syntax error");
        rig.check("memory|usage usage k foo 1", "-ERR syntax error");
        let integer = "-ERR value is not an integer or out of range\r\n";
        rig.check("memory|usage usage k SAMPLES x", integer);
    }
}
