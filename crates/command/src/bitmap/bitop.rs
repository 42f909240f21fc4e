//! BITOP: combines the bits of several values.

use crate::options::is;
use crate::string::owned::{bytes, owned};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::bits::{self, BitOp};
use rufous_kernel::shard::{ExpirySetting, NewValue};

command! {
    /// Stores the bitwise AND, OR or XOR of several strings, or the NOT of one, and returns its
    /// length.
    BITOP = run: "bitop", syntax "AND | OR | XOR | NOT destkey key [key ...]", arity -4,
    group Bitmap, since "2.6.0", flags WRITE | DENYOOM | SLOW,
    complexity "O(N) with N bytes in all sources", keys Keys::Range {
        first: 2,
        last: -1,
        step: 1,
    },
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let op = match args.get(1) {
        word if is(word, "AND") => BitOp::And,
        word if is(word, "OR") => BitOp::Or,
        word if is(word, "XOR") => BitOp::Xor,
        word if is(word, "NOT") => BitOp::Not,
        _ => return Err(Failure::SYNTAX),
    };
    let mut sources = Vec::with_capacity(args.len() - 3);
    for source in args.iter_from(3) {
        let key = ctx.key(source);
        sources.push(owned(ctx.shard.get(ctx.db, key, ctx.now)?));
    }
    let sources: Vec<&[u8]> = sources.iter().map(bytes).collect();
    let result = bits::bitop(op, &sources)?;
    reply.count(result.len());
    let key = ctx.first_key(args.get(2));
    if result.is_empty() {
        ctx.shard.remove(ctx.db, key, ctx.now);
    } else {
        let value = NewValue::Own(result);
        ctx.shard
            .set(ctx.db, key, value, ExpirySetting::Clear, ctx.now);
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    replaces_or_removes_the_destination: "
        SET r old PX 10 => +OK
        SET a x => +OK
        BITOP OR r a => :1
        after 10 ms: GET r => 'x'
        BITOP AND r none nothing => :0
        GET r => $-1
    "

    refusals: "
        BITOP NAND r a => -ERR syntax error
        BITOP NOT r a b => -ERR BITOP NOT must be called with a single source key.
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn combines_strings_of_any_length() {
        let mut rig = Rig::new();
        rig.check("MSET a abc b ABCD", "+OK");
        rig.check("BITOP and r a b", ":4");
        rig.check("GET r", "'ABC\0'");
        rig.check("BITOP OR r a b none", ":4");
        rig.check("GET r", "'abcD'");
        rig.check("BITOP XOR r a b", ":4");
        rig.check("GET r", "'   D'");
        rig.check("BITOP NOT r r", ":4");
        assert_eq!(rig.run(&[b"GET", b"r"]), b"$4\r\n\xdf\xdf\xdf\xbb\r\n");
        rig.check("BITOP XOR a a a", ":3");
        rig.check("GET a", "'\0\0\0'");
    }

    #[test]
    fn large_sources_are_shared() {
        let mut rig = Rig::new();
        rig.run(&[b"SET", b"a", &vec![0x0f; 100_000]]);
        rig.run(&[b"SET", b"b", &vec![0xf0; 90_000]]);
        rig.check("BITOP OR a a b", ":100000");
        rig.check("BITCOUNT a", ":760000");
        rig.check("BITCOUNT b", ":360000");
    }
}
