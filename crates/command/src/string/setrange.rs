//! SETRANGE: overwrites a part of a value.

use crate::options::integer;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_base::limits::MAX_BULK;
use rufous_datatype::range::setrange_offset;
use rufous_kernel::shard::Value;

command! {
    /// Overwrites a part of the string at a key from an offset on, after filling up with zero bytes
    /// where the string is too short or missing.
    SETRANGE = run: "setrange", syntax "key offset value", arity 4, group String, since "2.2.0",
    flags WRITE | DENYOOM,
    complexity "O(M) with M bytes to write, plus the zero bytes in front of them",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let bytes = args.get(3);
    let offset = setrange_offset(integer(args.get(2))?, bytes.len(), MAX_BULK)?;
    let key = ctx.first_key(args.get(1));
    let old = ctx.shard.peek(ctx.db, key, ctx.now)?.map(Value::bytes);
    let old = old.map_or(0, <[u8]>::len);
    // Nothing to write: no key is created, and none is made longer.
    if bytes.is_empty() {
        reply.count(old);
        return Ok(());
    }
    let end = offset + bytes.len();
    let range = offset..end;
    let len = ctx
        .shard
        .edit((ctx.db, key), end, Some(range.clone()), ctx.now, |value| {
            value[range].copy_from_slice(bytes);
            value.len()
        });
    reply.count(len);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    overwrites_and_fills_up: "
        SET k hello-world PX 10 => +OK
        SETRANGE k 6 redis => :11
        SETRANGE k 12 ! => :13
        GET k => 'hello-redis\0!'
        after 10 ms: GET k => $-1
        SETRANGE k 3 x => :4
        GET k => '\0\0\0x'
    "

    an_empty_value_changes_nothing: "
        SETRANGE k 100 '' => :0
        GET k => $-1
        SET k abc => +OK
        SETRANGE k 9223372036854775807 '' => :3
        GET k => 'abc'
    "

    offsets_have_limits: "
        SETRANGE k -1 '' => -ERR offset is out of range
        SETRANGE k x v => -ERR value is not an integer or out of range
        SETRANGE k 536870912 v => -ERR string exceeds maximum allowed size (proto-max-bulk-len)
        SETRANGE k 9223372036854775807 v => -ERR string exceeds maximum allowed size (proto-max-bulk-len)
        GET k => $-1
    "
}
