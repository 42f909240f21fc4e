//! SPOP: takes members out of a set, whichever.

use crate::elements::positive;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::set::{Op, Set, View};
use rufous_kernel::shard::Any;

command! {
    /// Removes random members from a set and returns them.
    SPOP = run: "spop", syntax "key [count]", arity -2, group Set, since "1.0.0",
    flags WRITE | FAST, complexity "O(N) with N members removed", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    if args.len() == 2 {
        let mut taken = Vec::new();
        let rng = &mut *ctx.rng;
        let found = ctx.shard.update::<Set, _>(ctx.db, key, ctx.now, |set| {
            let (member, _) = set.view().random(rng)?;
            taken.extend_from_slice(member);
            set.apply(&Op::Remove { member: &taken });
            Some(())
        })?;
        match found {
            Some(()) => reply.bulk(&taken),
            None => reply.null(),
        }
        return Ok(());
    }
    if args.len() > 3 {
        return Err(Failure::SYNTAX);
    }
    let count = positive(args.get(2))?;
    let set = ctx.shard.look(ctx.db, key, ctx.now).map(Any::of::<Set>);
    let set = set.transpose()?;
    let len = set.map_or(0, View::len);
    reply.set(count.min(len));
    if let Some(set) = set.filter(|_| count >= len) {
        set.iter().for_each(|(member, _)| reply.bulk(member));
        ctx.shard.remove(ctx.db, key, ctx.now);
        return Ok(());
    }
    if count == 0 || len == 0 {
        return Ok(());
    }
    let (rng, mut taken) = (&mut *ctx.rng, Vec::new());
    ctx.shard.update::<Set, _>(ctx.db, key, ctx.now, |set| {
        for _ in 0..count {
            let Some((member, _)) = set.view().random(rng) else {
                break;
            };
            reply.bulk(member);
            taken.clear();
            taken.extend_from_slice(member);
            set.apply(&Op::Remove { member: &taken });
        }
    })?;
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    refusals: "
        SPOP k -1 => -ERR value is out of range, must be positive
        SPOP k x => -ERR value is out of range, must be positive
        SPOP k 1 2 => -ERR syntax error
        SET k v => +OK
        SPOP k => -WRONGTYPE Operation against a key holding the wrong kind of value
        SPOP k 0 => -WRONGTYPE Operation against a key holding the wrong kind of value
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn one_of_them() {
        let mut rig = Rig::new();
        rig.check("SPOP k", "$-1");
        rig.check("SADD k a b", ":2");
        let one = rig.run(&[b"SPOP", b"k"]);
        let other = rig.run(&[b"SPOP", b"k"]);
        let mut both = [one, other];
        both.sort();
        assert_eq!(both, [b"$1\r\na\r\n", b"$1\r\nb\r\n"]);
        rig.check("EXISTS k", ":0");
    }

    #[test]
    fn so_many_of_them() {
        let mut rig = Rig::new();
        rig.check("SPOP k 3", "*0");
        for n in 0..3_000 {
            rig.check(&format!("SADD k {n}"), ":1");
        }
        rig.check("SPOP k 0", "*0");
        let taken = rig.run(&[b"SPOP", b"k", b"2000"]);
        assert!(taken.starts_with(b"*2000\r\n"));
        let text = String::from_utf8(taken).expect("text");
        for member in text.split("\r\n").skip(2).step_by(2) {
            rig.check(&format!("SISMEMBER k {member}"), ":0");
        }
        rig.check("SCARD k", ":1000");
        assert!(
            rig.resp3()
                .run(&[b"SPOP", b"k", b"5000"])
                .starts_with(b"~1000\r\n")
        );
        rig.check("EXISTS k", ":0");
    }
}
