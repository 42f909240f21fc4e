//! SRANDMEMBER: shows members of a set, whichever.

use crate::elements::{draw_different, draws, repeated};
use crate::made::{self, All, Draws, Form};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::set::Set;

command! {
    /// Returns random members of a set: different ones, or with a negative count any.
    SRANDMEMBER = run: "srandmember", syntax "key [count]", arity -2, group Set, since "1.0.0",
    flags READONLY, complexity "O(N) with N members returned", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    if args.len() > 3 {
        return Err(Failure::SYNTAX);
    }
    let key = ctx.first_key(args.get(1));
    if args.len() == 2 {
        let set = ctx.shard.collection::<Set>(ctx.db, key, ctx.now)?;
        match set.and_then(|set| set.random(ctx.rng)) {
            Some((member, _)) => reply.bulk(member),
            None => reply.null(),
        }
        return Ok(());
    }
    let count = draws(args.get(2))?;
    let Some(set) = ctx.shard.collection::<Set>(ctx.db, key, ctx.now)? else {
        reply.array(0);
        return Ok(());
    };
    if count < 0 {
        let count = repeated(count)?;
        reply.array(count as usize);
        made::write::<Set>(set, Draws::new(count, Form::Name, ctx.rng), reply);
        return Ok(());
    }
    let count = set.len().min(count as usize);
    reply.array(count);
    if count == set.len() {
        made::write::<Set>(set, All::of(set, Form::Name), reply);
        return Ok(());
    }
    draw_different(set, count, ctx.rng, |member, _| reply.bulk(member));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    any_or_different_ones: "
        SRANDMEMBER k => $-1
        SRANDMEMBER k 3 => *0
        SADD k a => :1
        SRANDMEMBER k => 'a'
        SRANDMEMBER k 0 => *0
        SRANDMEMBER k 3 => *1 'a'
        SRANDMEMBER k -2 => *2 'a' 'a'
        SCARD k => :1
    "

    refusals: "
        SRANDMEMBER k 1 2 => -ERR syntax error
        SRANDMEMBER k x => -ERR value is not an integer or out of range
        SRANDMEMBER k -9223372036854775808 => -ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
        SADD k a => :1
        SRANDMEMBER k -9223372036854775807 => -ERR a reply has at most 178956970 elements that may repeat; ask for fewer, more often
    "
}
