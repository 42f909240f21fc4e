//! SADD: adds members to a set.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::set::{Op, Set};

command! {
    /// Adds members to a set, creating it where the key is missing; answers how many are new.
    SADD = run: "sadd", syntax "key member [member ...]", arity -3, group Set, since "1.0.0",
    flags WRITE | DENYOOM | FAST, complexity "O(N) with N members", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let new = ctx.shard.update::<Set, _>(ctx.db, key, ctx.now, |set| {
        let add = |member: &&[u8]| set.apply(&Op::Add { member }).is_true();
        args.iter_from(2).filter(add).count()
    })?;
    reply.count(new);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    counts_what_is_new: "
        SADD k a b a => :2
        SADD k b c => :1
        SADD k a => :0
        SADD k '' => :1
        SCARD k => :4
    "

    keeps_the_expiry_and_the_wrong_type: "
        SADD k a => :1
        PEXPIRE k 10 => :1
        SADD k b => :1
        after 10 ms: SCARD k => :0
        SET k v => +OK
        SADD k a => -WRONGTYPE Operation against a key holding the wrong kind of value
        GET k => 'v'
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn grows_from_a_record_to_a_table() {
        let mut rig = Rig::new();
        for n in 0..2_000 {
            rig.check(&format!("SADD k {n}"), ":1");
        }
        rig.check("SCARD k", ":2000");
        for n in 0..2_000 {
            rig.check(&format!("SISMEMBER k {n}"), ":1");
            rig.check(&format!("SREM k {n}"), ":1");
        }
        rig.check("EXISTS k", ":0");
    }
}
