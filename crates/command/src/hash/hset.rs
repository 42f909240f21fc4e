//! HSET: gives fields of a hash their values.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::hash::{Hash, Op};

command! {
    /// Sets fields of a hash, creating it where the key is missing; answers how many are new.
    HSET = run: "hset", syntax "key field value [field value ...]", arity -4, group Hash,
    since "2.0.0", flags WRITE | DENYOOM | FAST, complexity "O(N) with N fields", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let new = set(ctx, &args, "hset")?;
    reply.count(new);
    Ok(())
}

/// Sets the fields that the arguments name, each before its value; returns
/// how many are new.
#[inline]
pub(super) fn set(ctx: &mut Ctx<'_>, args: &Args<'_>, name: &str) -> Result<usize, Failure> {
    if !args.len().is_multiple_of(2) {
        return Err(Failure::wrong_arity(name));
    }
    let key = ctx.first_key(args.get(1));
    let new = ctx.shard.update::<Hash, _>(ctx.db, key, ctx.now, |hash| {
        let mut new = 0;
        for at in (2..args.len()).step_by(2) {
            let (field, value) = (args.get(at), args.get(at + 1));
            new += usize::from(hash.apply(&Op::Set { field, value }).is_true());
        }
        new
    })?;
    Ok(new)
}

#[cfg(test)]
crate::testing::transcripts! {
    counts_what_is_new: "
        HSET k a 1 b 2 a 3 => :2
        HSET k b 4 c 5 => :1
        HMGET k a b c => *3 '3' '4' '5'
        HSET k '' '' => :1
        HGET k '' => ''
    "

    refusals: "
        HSET k a 1 b => -ERR wrong number of arguments for 'hset' command
        SET s v => +OK
        HSET s a 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        GET s => 'v'
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn grows_from_a_record_to_a_table() {
        let mut rig = Rig::new();
        for n in 0..1_000 {
            rig.check(&format!("HSET k f{n} {n}"), ":1");
        }
        rig.check("HSET k f7 seven", ":0");
        rig.check("HLEN k", ":1000");
        rig.check("HGET k f7", "'seven'");
        rig.run(&[b"HSET", b"k", b"f8", &[b'x'; 100_000]]);
        rig.check("HSTRLEN k f8", ":100000");
        rig.check("HGET k f999", "'999'");
    }
}
