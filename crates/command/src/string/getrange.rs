//! GETRANGE: a part of a value.

use crate::options::integer;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::range::string_range;
use rufous_kernel::shard::Value;

command! {
    /// Reads the bytes between two offsets, both included, of the string at a key; negative offsets
    /// count from the end.
    GETRANGE = run: "getrange", syntax "key start end", arity 4, group String, since "2.4.0",
    flags READONLY, complexity "O(N) with N bytes in the reply", keys Keys::FIRST,
}

/// SUBSTR runs this too.
pub(super) fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let (start, end) = (integer(args.get(2))?, integer(args.get(3))?);
    let key = ctx.first_key(args.get(1));
    let Some(value) = ctx.shard.get(ctx.db, key, ctx.now)? else {
        reply.bulk(b"");
        return Ok(());
    };
    let range = string_range(start, end, value.bytes().len());
    match value {
        Value::Big(whole) if range == (0..whole.len()) => reply.shared(whole),
        _ => reply.bulk(&value.bytes()[range]),
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    offsets_from_both_ends: "
        SET k This-is-a-string => +OK
        GETRANGE k 0 3 => 'This'
        GETRANGE k -3 -1 => 'ing'
        GETRANGE k 10 100 => 'string'
        GETRANGE k 0 -100 => 'T'
        GETRANGE k -1 -3 => ''
        GETRANGE k 5 3 => ''
        GETRANGE none 0 -1 => ''
        GETRANGE none x -1 => -ERR value is not an integer or out of range
        GETRANGE k 0 x => -ERR value is not an integer or out of range
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn parts_and_the_whole_of_a_big_value() {
        let mut rig = Rig::new();
        let value: Vec<u8> = (0..100_000).map(|i| (i % 251) as u8).collect();
        rig.run(&[b"SET", b"k", &value]);
        let whole = rig.run(&[b"GETRANGE", b"k", b"0", b"-1"]);
        assert_eq!(whole, rig.run(&[b"GET", b"k"]));
        let mut part = b"$50000\r\n".to_vec();
        part.extend_from_slice(&value[10..50_010]);
        part.extend_from_slice(b"\r\n");
        assert_eq!(rig.run(&[b"GETRANGE", b"k", b"10", b"50009"]), part);
    }
}
