//! RANK.RANGE: a part of a ranking.

use crate::{Ctx, Failure, Keys, Reply, command, options};
use rufous_base::Args;
use rufous_resp::encode::Proto;

command! {
    /// Returns the members of a ranking from one rank to another, the highest first. Rank 0 is the
    /// highest, -1 the lowest.
    RANGE = run: "rank.range", syntax "key start stop [WITHSCORES]", arity -4, group Claret,
    since "7.2.0", flags READONLY, complexity "O(log(k)+N) with N members returned",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let (start, stop) = (
        options::integer(args.get(2))?,
        options::integer(args.get(3))?,
    );
    let scored = match args.len() {
        4 => false,
        5 if options::is(args.get(4), "WITHSCORES") => true,
        _ => return Err(Failure::SYNTAX),
    };
    let Some(ranking) = super::ranking(ctx, &args)? else {
        reply.array(0);
        return Ok(());
    };
    let span = ranking.span(start, stop);
    // As in Redis's ranges: pairs in RESP3, one after the other before.
    let pairs = scored && reply.proto == Proto::Resp3;
    reply.array(match scored && !pairs {
        true => span.len() * 2,
        false => span.len(),
    });
    ranking.each(span, |member, score| {
        if pairs {
            reply.array(2);
        }
        reply.bulk(member);
        if scored {
            reply.double(score);
        }
    });
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    from_the_highest: "
        RANK.RANGE k 0 -1 => *0
        RANK.ADD k 9 1 a 2 b 3 c 3 d => +OK
        RANK.RANGE k 0 1 => *2 'd' 'c'
        RANK.RANGE k -1 -1 => *1 'a'
        RANK.RANGE k 2 1 => *0
        RANK.RANGE k 3 99 withscores => *2 'a' '1'
        RANK.RANGE k 0 1 x => -ERR syntax error
        resp3: RANK.RANGE k 3 3 WITHSCORES => *1 *2 'a' ,1
    "
}
