//! ZRANK: how many members come before one.

use super::reply::score;
use crate::options::is;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::sorted_set::SortedSet;

command! {
    /// Returns the position of a member of a sorted set, counted from the lowest score.
    ZRANK = run: "zrank", syntax "key member [WITHSCORE]", arity -3, group SortedSet,
    since "2.0.0", flags READONLY | FAST, complexity "O(log(N)) with N members in the set",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    answer(ctx, &args, reply, false)
}

pub(super) fn answer(
    ctx: &mut Ctx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    from_top: bool,
) -> Result<(), Failure> {
    let with_score = match args.len() {
        3 => false,
        4 if is(args.get(3), "WITHSCORE") => true,
        _ => return Err(Failure::SYNTAX),
    };
    let key = ctx.first_key(args.get(1));
    let view = ctx.shard.collection::<SortedSet>(ctx.db, key, ctx.now)?;
    let found = view.and_then(|view| Some((view, view.rank(args.get(2))?)));
    match found {
        Some((view, (rank, of))) => {
            if with_score {
                reply.array(2);
            }
            reply.count(match from_top {
                true => view.len() - 1 - rank,
                false => rank,
            });
            if with_score {
                score(reply, of);
            }
        }
        None if with_score => reply.null_array(),
        None => reply.null(),
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    positions_from_the_lowest: "
        ZRANK z a => $-1
        ZADD z 3 a 1 b 1 a0 => :3
        ZRANK z a => :2
        ZRANK z b => :1
        ZRANK z b withscore => *2 :1 '1'
        ZRANK z none WITHSCORE => *-1
        ZRANK z b SCORE => -ERR syntax error
        ZRANK z b WITHSCORE x => -ERR syntax error
    "
}
