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
crate::testing::transcripts! {
    keeps_the_highest_and_the_greatest_scores: "
        RANK.ADD k 2 5 a 3 b 4 c => +OK
        RANK.RANGE k 0 -1 => *2 'a' 'c'
        RANK.ADD k 2 1 a 9 b => +OK
        RANK.RANGE k 0 -1 => *2 'b' 'a'
        RANK.SCORE k a => '5'
        TYPE k => +ranking
        object|encoding encoding k => 'listpack'
    "

    the_least_k_holds: "
        RANK.ADD k 5 1 a 2 b 3 c => +OK
        RANK.ADD k 2 0 d => +OK
        RANK.LEN k => :2
        RANK.ADD k 5 4 d => +OK
        RANK.RANGE k 0 -1 => *2 'd' 'c'
    "

    wrong_arguments_and_types: "
        RANK.ADD k 0 1 a => -ERR k must be between 1 and 16384
        RANK.ADD k 16385 1 a => -ERR k must be between 1 and 16384
        RANK.ADD k 2 1 a 2 => -ERR syntax error
        RANK.ADD k 2 1 a nan b => -ERR value is not a valid float
        EXISTS k => :0
        RANK.ADD k 2 inf a => +OK
        SET s v => +OK
        RANK.ADD s 1 1 a => -WRONGTYPE Operation against a key holding the wrong kind of value
        RANK.MAX s => -WRONGTYPE Operation against a key holding the wrong kind of value
        RANK.RANGE s 0 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        RANK.SCORE s a => -WRONGTYPE Operation against a key holding the wrong kind of value
        RANK.POSITION s a => -WRONGTYPE Operation against a key holding the wrong kind of value
        RANK.LEN s => -WRONGTYPE Operation against a key holding the wrong kind of value
        GET s => 'v'
        BAG.ADD k 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
    "
}
