//! RANK.ADD: adds members to a ranking.

use crate::{Ctx, Failure, Keys, Reply, command, options};
use rufous_base::Args;
use rufous_datatype::top_k::{Add, MAX_K, Op, TopK};

command! {
    /// Adds members to the ranking at a key, creating it where it is missing. A member keeps its
    /// greatest score, and the ranking its k highest members, with the least k that was ever given.
    /// The reply tells nothing of the ranking, so adds are independent of each other.
    ADD = run: "rank.add", syntax "key k score member [score member ...]", arity -5, group Claret,
    since "7.2.0", flags WRITE | DENYOOM | FAST, complexity "O(N*log(k)) with N members",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    if args.len().is_multiple_of(2) {
        return Err(Failure::SYNTAX);
    }
    let k = options::integer(args.get(2))?;
    let k = u32::try_from(k).ok().filter(|k| (1..=MAX_K).contains(k));
    let k = k.ok_or_else(|| Failure::from(format!("ERR k must be between 1 and {MAX_K}")))?;
    let mut scores = Vec::with_capacity(args.len() / 2);
    for at in (3..args.len()).step_by(2) {
        // The two zeros are one score.
        scores.push(super::super::number(args.get(at))? + 0.0);
    }
    ctx.shard
        .update::<TopK, _>(ctx.db, key, ctx.now, |editor| {
            for (index, &score) in scores.iter().enumerate() {
                let member = args.get(4 + 2 * index);
                editor.apply(&Op::Add(Add { k, score, member }));
            }
        })?;
    reply.ok();
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn keeps_the_highest_and_the_greatest_scores() {
        let mut rig = Rig::new();
        rig.check("RANK.ADD k 2 5 a 3 b 4 c", "+OK\r\n");
        rig.check("RANK.RANGE k 0 -1", "*2\r\n$1\r\na\r\n$1\r\nc\r\n");
        rig.check("RANK.ADD k 2 1 a 9 b", "+OK\r\n");
        rig.check("RANK.RANGE k 0 -1", "*2\r\n$1\r\nb\r\n$1\r\na\r\n");
        rig.check("RANK.SCORE k a", "$1\r\n5\r\n");
        rig.check("TYPE k", "+ranking\r\n");
        rig.check("object|encoding encoding k", "$8\r\nlistpack\r\n");
    }

    #[test]
    fn the_least_k_holds() {
        let mut rig = Rig::new();
        rig.check("RANK.ADD k 5 1 a 2 b 3 c", "+OK\r\n");
        rig.check("RANK.ADD k 2 0 d", "+OK\r\n");
        rig.check("RANK.LEN k", ":2\r\n");
        rig.check("RANK.ADD k 5 4 d", "+OK\r\n");
        rig.check("RANK.RANGE k 0 -1", "*2\r\n$1\r\nd\r\n$1\r\nc\r\n");
    }

    #[test]
    fn wrong_arguments_and_types() {
        let mut rig = Rig::new();
        let k = "-ERR k must be between 1 and 16384\r\n";
        rig.check("RANK.ADD k 0 1 a", k);
        rig.check("RANK.ADD k 16385 1 a", k);
        rig.check("RANK.ADD k 2 1 a 2", "-ERR syntax error\r\n");
        rig.check(
            "RANK.ADD k 2 1 a nan b",
            "-ERR value is not a valid float\r\n",
        );
        rig.check("EXISTS k", ":0\r\n");
        rig.check("RANK.ADD k 2 inf a", "+OK\r\n");
        let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
        rig.check("SET s v", "+OK\r\n");
        for command in [
            "ADD s 1 1 a",
            "MAX s",
            "RANGE s 0 1",
            "SCORE s a",
            "POSITION s a",
            "LEN s",
        ] {
            rig.check(&format!("RANK.{command}"), wrong);
        }
        rig.check("GET s", "$1\r\nv\r\n");
        rig.check("BAG.ADD k 1", wrong);
    }
}
