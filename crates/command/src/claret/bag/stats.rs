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
mod tests {
    use crate::testing::Rig;

    #[test]
    fn all_at_once() {
        let mut rig = Rig::new();
        rig.check(
            "BAG.STATS k",
            "*10\r\n$5\r\ncount\r\n:0\r\n$3\r\nsum\r\n$1\r\n0\r\n$4\r\nmean\r\n$-1\r\n\
             $3\r\nmin\r\n$-1\r\n$3\r\nmax\r\n$-1\r\n",
        );
        rig.check("BAG.ADD k 1 4", "+OK\r\n");
        rig.resp3().check(
            "BAG.STATS k",
            "%5\r\n$5\r\ncount\r\n:2\r\n$3\r\nsum\r\n,5\r\n$4\r\nmean\r\n,2.5\r\n\
             $3\r\nmin\r\n,1\r\n$3\r\nmax\r\n,4\r\n",
        );
    }
}
