//! APPEND: adds bytes at the end of a value.

use super::set::new_value;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_base::limits::MAX_BULK;
use rufous_datatype::range::check_string_len;
use rufous_kernel::shard::{ExpirySetting, Value};

command! {
    /// Adds bytes at the end of the string at a key, creating the key where it is missing.
    APPEND = run: "append", syntax "key value", arity 3, group String, since "2.0.0",
    flags WRITE | DENYOOM | FAST,
    complexity "O(1) amortized: a value that outgrows its memory is moved to twice as much",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, mut args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let big = args.take_big(2);
    let key = ctx.first_key(args.get(1));
    let old = ctx.shard.peek(ctx.db, key, ctx.now)?.map(Value::bytes);
    let Some(old) = old.map(<[u8]>::len) else {
        let value = new_value(big, args.get(2));
        reply.count(value.bytes().len());
        ctx.shard
            .set(ctx.db, key, value, ExpirySetting::Clear, ctx.now);
        return Ok(());
    };
    let tail = big.as_deref().unwrap_or(args.get(2));
    check_string_len(old as u64, tail.len() as u64, MAX_BULK)?;
    reply.count(ctx.shard.append(ctx.db, key, tail, ctx.now));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    creates_and_grows: "
        APPEND k ab => :2
        APPEND k c => :3
        APPEND k '' => :3
        GET k => 'abc'
        APPEND none '' => :0
        GET none => ''
    "

    keeps_the_expiry: "
        SET k a PX 10 => +OK
        APPEND k b => :2
        after 10 ms: GET k => $-1
    "

    stops_at_the_longest_string: "
        SETRANGE k 536870911 x => :536870912
        APPEND k x => -ERR string exceeds maximum allowed size (proto-max-bulk-len)
        APPEND k '' => :536870912
        STRLEN k => :536870912
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn grows_from_a_record_to_a_big_value() {
        let mut rig = Rig::new();
        let mut expected = Vec::new();
        for i in 0..300 {
            let piece = vec![b'a' + (i % 26) as u8; i];
            expected.extend_from_slice(&piece);
            let len = rig.run(&[b"APPEND", b"k", &piece]);
            assert_eq!(len, format!(":{}\r\n", expected.len()).into_bytes());
        }
        let mut reply = format!("${}\r\n", expected.len()).into_bytes();
        reply.extend_from_slice(&expected);
        reply.extend_from_slice(b"\r\n");
        assert_eq!(rig.run(&[b"GET", b"k"]), reply);
    }
}
