//! What INCR, DECR, INCRBY and DECRBY share: adding to a number kept as text.

use crate::{Ctx, Failure, Reply};
use rufous_datatype::integer;
use rufous_kernel::shard::strings;
use rufous_kernel::shard::{ExpirySetting, NewValue, Value};

/// Adds `by` to the number at `key`, a missing one counting as 0, and replies
/// the sum. The key's expiry stays. Nothing is allocated: the digits are made
/// on the stack, and where their number stays the same they overwrite the old
/// ones in place. At a replicated key, additions at all replicas add up, and
/// the sum is that of those known here.
#[inline]
pub(super) fn add(
    ctx: &mut Ctx<'_>,
    key: &[u8],
    by: i64,
    reply: &mut Reply<'_>,
) -> Result<(), Failure> {
    let key = ctx.first_key(key);
    if let Some(sum) = strings::increment(&mut ctx.shard.at(ctx.db, key, ctx.now), by) {
        reply.integer(sum?);
        return Ok(());
    }
    let old = ctx.shard.peek(ctx.db, key, ctx.now)?.map(Value::bytes);
    let sum = integer::increment(old, by)?;
    let mut buffer = itoa::Buffer::new();
    let digits = NewValue::Copy(buffer.format(sum).as_bytes());
    ctx.shard
        .set(ctx.db, key, digits, ExpirySetting::Keep, ctx.now);
    reply.integer(sum);
    Ok(())
}
