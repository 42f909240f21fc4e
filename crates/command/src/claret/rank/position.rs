//! RANK.POSITION: the rank of a member.

use crate::{Ctx, Failure, Keys, Reply, command, options};
use rufous_base::Args;

command! {
    /// Returns how many members of a ranking are higher than this one, and its score if asked for;
    /// null where it is none.
    POSITION = run: "rank.position", syntax "key member [WITHSCORE]", arity -3, group Claret,
    since "7.2.0", flags READONLY | FAST, complexity "O(log(k))", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let scored = match args.len() {
        3 => false,
        4 if options::is(args.get(3), "WITHSCORE") => true,
        _ => return Err(Failure::SYNTAX),
    };
    let member = args.get(2);
    let found = super::ranking(ctx, &args)?
        .and_then(|ranking| Some((ranking.position(member)?, ranking.score(member)?)));
    match found {
        Some((rank, score)) if scored => {
            reply.array(2);
            reply.count(rank);
            reply.double(score);
        }
        Some((rank, _)) => reply.count(rank),
        None if scored => reply.null_array(),
        None => reply.null(),
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    counts_from_the_highest: "
        RANK.POSITION k a => $-1
        RANK.ADD k 5 1 a 2 b => +OK
        RANK.POSITION k a => :1
        RANK.POSITION k b => :0
        RANK.POSITION k c => $-1
        RANK.POSITION k a withscore => *2 :1 '1'
        RANK.POSITION k c WITHSCORE => *-1
        RANK.POSITION k a SCORE => -ERR syntax error
        resp3: RANK.POSITION k a WITHSCORE => *2 :1 ,1
    "
}
