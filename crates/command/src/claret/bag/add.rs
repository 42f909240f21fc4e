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
mod tests {
    use crate::testing::Rig;

    #[test]
    fn all_or_nothing_is_added() {
        let mut rig = Rig::new();
        rig.check("BAG.ADD k 1 2.5 -3", "+OK\r\n");
        rig.check("BAG.ADD k 7 x", "-ERR value is not a valid float\r\n");
        rig.check("BAG.ADD k 7 inf", "-ERR value is NaN or Infinity\r\n");
        rig.check("BAG.COUNT k", ":3\r\n");
        rig.check("TYPE k", "+bag\r\n");
        rig.check("object|encoding encoding k", "$5\r\nexact\r\n");
    }

    #[test]
    fn other_types_are_refused() {
        let mut rig = Rig::new();
        let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
        rig.check("SET s v", "+OK\r\n");
        for command in [
            "ADD s 1", "COUNT s", "SUM s", "MEAN s", "MIN s", "MAX s", "STATS s",
        ] {
            rig.check(&format!("BAG.{command}"), wrong);
        }
        rig.check("GET s", "$1\r\nv\r\n");
        rig.check("BAG.ADD k 1", "+OK\r\n");
        rig.check("INCR k", wrong);
        rig.check("UID.NEXT k", wrong);
    }
}
