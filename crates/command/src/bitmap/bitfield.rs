//! BITFIELD: reads and changes integers of any width within a value.

use crate::options::{integer, is};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_base::limits::MAX_BULK;
use rufous_datatype::bitfield::{self, BitfieldAction, BitfieldOp, BitfieldOverflow, BitfieldType};
use rufous_datatype::bits::parse_bit_offset;
use rufous_kernel::shard::Value;

command! {
    /// Reads, sets and increments integers of any width at any bit offset of the string at a key.
    BITFIELD = run: "bitfield",
    syntax "key [GET encoding offset | [OVERFLOW WRAP | SAT | FAIL] SET encoding offset value | INCRBY encoding offset increment [GET encoding offset | [OVERFLOW WRAP | SAT | FAIL] SET encoding offset value | INCRBY encoding offset increment ...]]",
    arity -2, group Bitmap, since "3.2.0", flags WRITE | DENYOOM,
    complexity "O(1) for each operation", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let ops = parse(&args)?;
    let len = ops.iter().map(BitfieldOp::required_len).max().unwrap_or(0);
    if len == 0 {
        return read(ctx, args.get(1), &ops, reply);
    }
    let key = ctx.first_key(args.get(1));
    if let Some(replies) = replies_without_change(ctx, args.get(1), &ops)? {
        replies_of(&replies, reply);
        return Ok(());
    }
    let writes = ops.iter().filter(|op| op.is_write());
    let changed = writes.map(|op| (op.offset / 8) as usize..op.required_len() as usize);
    let replies: Vec<_> = ctx
        .shard
        .edit((ctx.db, key), len as usize, changed, ctx.now, |bytes| {
            ops.iter().map(|op| op.apply(bytes)).collect()
        });
    replies_of(&replies, reply);
    Ok(())
}

/// The replies to operations that would leave the value as it is, which then
/// counts as no change. (Each sees what the one before it left: the same.)
fn replies_without_change(
    ctx: &mut Ctx<'_>,
    key: &[u8],
    ops: &[BitfieldOp],
) -> Result<Option<Vec<Option<i64>>>, Failure> {
    let key = ctx.first_key(key);
    let Some(value) = ctx.shard.peek(ctx.db, key, ctx.now)? else {
        return Ok(None);
    };
    let replies = ops.iter().map(|op| op.reply_without_change(value.bytes()));
    Ok(replies.collect())
}

fn replies_of(replies: &[Option<i64>], reply: &mut Reply<'_>) {
    reply.array(replies.len());
    for value in replies {
        match value {
            Some(value) => reply.integer(*value),
            None => reply.null(),
        }
    }
}

/// The operations in the arguments after the key, in order; `OVERFLOW` holds
/// for those after it.
pub(super) fn parse(args: &Args<'_>) -> Result<Vec<BitfieldOp>, Failure> {
    let mut ops = Vec::new();
    let mut overflow = BitfieldOverflow::default();
    let mut at = 2;
    while at < args.len() {
        let (word, left) = (args.get(at), args.len() - at - 1);
        if is(word, "OVERFLOW") && left >= 1 {
            overflow = BitfieldOverflow::parse(args.get(at + 1))?;
            at += 2;
            continue;
        }
        let get = is(word, "GET") && left >= 2;
        let set = is(word, "SET") && left >= 3;
        if !(get || set || is(word, "INCRBY") && left >= 3) {
            return Err(Failure::SYNTAX);
        }
        let field = BitfieldType::parse(args.get(at + 1))?;
        let offset = parse_bit_offset(args.get(at + 2), Some(field.width()), MAX_BULK)?;
        let action = if get {
            BitfieldAction::Get
        } else if set {
            BitfieldAction::Set(integer(args.get(at + 3))?)
        } else {
            BitfieldAction::IncrementBy(integer(args.get(at + 3))?)
        };
        at += if get { 3 } else { 4 };
        ops.push(BitfieldOp {
            field,
            offset,
            action,
            overflow,
        });
    }
    Ok(ops)
}

/// Replies to operations that only read.
pub(super) fn read(
    ctx: &mut Ctx<'_>,
    key: &[u8],
    ops: &[BitfieldOp],
    reply: &mut Reply<'_>,
) -> Result<(), Failure> {
    let key = ctx.first_key(key);
    let value = ctx.shard.get(ctx.db, key, ctx.now)?.map(Value::bytes);
    reply.array(ops.len());
    for op in ops {
        let bytes = value.unwrap_or_default();
        reply.integer(bitfield::get(bytes, op.field, op.offset));
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    reads_sets_and_counts: "
        BITFIELD k => *0
        BITFIELD k GET u8 0 => *1 :0
        GET k => $-1
        BITFIELD k INCRBY i5 100 1 GET u4 0 => *2 :1 :0
        STRLEN k => :14
        BITFIELD b SET u8 #1 97 get u8 8 => *2 :0 :97
        GET b => '\0a'
        BITFIELD b SET i8 #1 -1 GET u8 8 GET i8 8 => *3 :97 :255 :-1
    "

    overflow_rules_hold_for_what_follows: "
        BITFIELD k INCRBY u2 100 3 overflow sat INCRBY u2 102 3 INCRBY u2 102 1 => *3 :3 :3 :3
        BITFIELD k INCRBY u2 100 1 => *1 :0
        BITFIELD k OVERFLOW FAIL INCRBY u2 102 1 GET u2 102 => *2 $-1 :3
        resp3: BITFIELD n OVERFLOW FAIL SET u8 0 256 => *1 _
        STRLEN n => :1
    "

    keeps_the_expiry: "
        SET k v PX 10 => +OK
        BITFIELD k SET u8 100 1 => *1 :0
        after 10 ms: GET k => $-1
    "

    nothing_happens_where_anything_is_refused: "
        BITFIELD k SET u8 0 1 GET u64 0 => -ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
        BITFIELD k SET u8 0 1 GET i65 0 => -ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
        BITFIELD k SET u8 0 1 GET u0 0 => -ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
        BITFIELD k SET u8 0 1 GET 8 0 => -ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
        BITFIELD k SET u8 0 1 GET x 0 => -ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
        BITFIELD k SET u8 0 1 GET u08 0 => -ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
        BITFIELD k SET u8 0 1 GET I8 0 => -ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
        BITFIELD k SET u8 0 1 GET u8 -1 => -ERR bit offset is not an integer or out of range
        BITFIELD k SET u8 0 1 GET u8 x => -ERR bit offset is not an integer or out of range
        BITFIELD k SET u8 0 1 GET u8 4294967296 => -ERR bit offset is not an integer or out of range
        BITFIELD k SET u8 0 1 GET u8 #536870912 => -ERR bit offset is not an integer or out of range
        BITFIELD k SET u8 0 1 GET u8 #-1 => -ERR bit offset is not an integer or out of range
        BITFIELD k SET u8 0 1 GET u8 #9223372036854775807 => -ERR bit offset is not an integer or out of range
        BITFIELD k SET u8 0 1 GET u8 => -ERR syntax error
        BITFIELD k SET u8 0 => -ERR syntax error
        BITFIELD k OVERFLOW => -ERR syntax error
        BITFIELD k OVERFLOW x => -ERR Invalid OVERFLOW type specified
        BITFIELD k SET u8 0 x => -ERR value is not an integer or out of range
        GET k => $-1
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn what_stays_as_it_is_counts_as_no_change() {
        let mut rig = Rig::new();
        let mut step = |request: &str, reply: &str, changes: u64| {
            let before = rig.shard.counters().changes;
            rig.check(request, reply);
            assert_eq!(rig.shard.counters().changes - before, changes, "{request}");
        };
        step("BITFIELD k SET i5 0 0", "*1\r\n:0\r\n", 1);
        step("BITFIELD k SET i5 0 0 GET u8 0", "*2\r\n:0\r\n:0\r\n", 0);
        step("BITFIELD k SET i5 0 1", "*1\r\n:0\r\n", 1);
        step(
            "BITFIELD k SET i5 0 1 INCRBY i5 0 0",
            "*2\r\n:1\r\n:1\r\n",
            0,
        );
        step(
            "BITFIELD k OVERFLOW FAIL INCRBY i5 0 15",
            "*1\r\n$-1\r\n",
            0,
        );
        step(
            "BITFIELD k SET i5 0 1 SET i5 0 2 SET i5 0 1",
            "*3\r\n:1\r\n:1\r\n:2\r\n",
            1,
        );
        step("BITFIELD k SET i5 90 0", "*1\r\n:0\r\n", 1);
    }
}
