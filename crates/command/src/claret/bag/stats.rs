//! BAG.STATS: all that is known of a bag, at once.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::bag::{self, Op};

command! {
    /// Returns count, sum, mean, minimum and maximum of a summary bag.
    STATS = run: "bag.stats", syntax "key", arity 2, group Claret, since "7.2.0",
    flags READONLY | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let bag::Reply::Stats(stats) = super::ask(ctx, &args, &Op::Stats)? else {
        return Ok(());
    };
    reply.map(5);
    reply.bulk(b"count");
    reply.integer(stats.count as i64);
    let numbers = [
        ("sum", Some(stats.sum)),
        ("mean", stats.mean),
        ("min", stats.min),
        ("max", stats.max),
    ];
    for (name, number) in numbers {
        reply.bulk(name.as_bytes());
        super::number(number, reply);
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    all_at_once: "
        BAG.STATS k => *10 'count' :0 'sum' '0' 'mean' $-1 'min' $-1 'max' $-1
        BAG.ADD k 1 4 => +OK
        resp3: BAG.STATS k => %5 'count' :2 'sum' ,5 'mean' ,2.5 'min' ,1 'max' ,4
    "
}
