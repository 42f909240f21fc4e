//! BAG.ADD: adds numbers to a summary.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::bag::{Bag, Op, value};

command! {
    /// Adds numbers to the summary bag at a key, creating it where it is missing. The reply tells
    /// nothing of the bag, so adds are independent of each other.
    ADD = run: "bag.add", syntax "key number [number ...]", arity -3, group Claret, since "7.2.0",
    flags WRITE | DENYOOM | FAST, complexity "O(N) with N numbers", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let mut values = Vec::with_capacity(args.len() - 2);
    for arg in args.iter_from(2) {
        let number = super::super::number(arg)?;
        values.push(value(number).ok_or(Failure::from("ERR value is NaN or Infinity"))?);
    }
    ctx.shard.update::<Bag, _>(ctx.db, key, ctx.now, |editor| {
        for value in values {
            editor.apply(&Op::Add(value));
        }
    })?;
    reply.ok();
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    all_or_nothing_is_added: "
        BAG.ADD k 1 2.5 -3 => +OK
        BAG.ADD k 7 x => -ERR value is not a valid float
        BAG.ADD k 7 inf => -ERR value is NaN or Infinity
        BAG.COUNT k => :3
        TYPE k => +bag
        object|encoding encoding k => 'exact'
    "

    other_types_are_refused: "
        SET s v => +OK
        BAG.ADD s 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        BAG.COUNT s => -WRONGTYPE Operation against a key holding the wrong kind of value
        BAG.SUM s => -WRONGTYPE Operation against a key holding the wrong kind of value
        BAG.MEAN s => -WRONGTYPE Operation against a key holding the wrong kind of value
        BAG.MIN s => -WRONGTYPE Operation against a key holding the wrong kind of value
        BAG.MAX s => -WRONGTYPE Operation against a key holding the wrong kind of value
        BAG.STATS s => -WRONGTYPE Operation against a key holding the wrong kind of value
        GET s => 'v'
        BAG.ADD k 1 => +OK
        INCR k => -WRONGTYPE Operation against a key holding the wrong kind of value
        UID.NEXT k => -WRONGTYPE Operation against a key holding the wrong kind of value
    "
}
