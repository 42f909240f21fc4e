//! HRANDFIELD: shows fields of a hash, whichever.

use crate::elements::{draw_different, draws, repeated};
use crate::made::{self, All, Draws, Form};
use crate::options::is;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::hash::Hash;
use rufous_resp::encode::Proto;

command! {
    /// Returns random fields of a hash: different ones, or with a negative count any.
    HRANDFIELD = run: "hrandfield", syntax "key [count [WITHVALUES]]", arity -2, group Hash,
    since "6.2.0", flags READONLY, complexity "O(N) with N fields returned", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    if args.len() == 2 {
        let hash = ctx.shard.collection::<Hash>(ctx.db, key, ctx.now)?;
        match hash.and_then(|hash| hash.random(ctx.rng)) {
            Some((field, _)) => reply.bulk(field),
            None => reply.null(),
        }
        return Ok(());
    }
    let (count, with_values) = parse(&args)?;
    let Some(hash) = ctx.shard.collection::<Hash>(ctx.db, key, ctx.now)? else {
        reply.array(0);
        return Ok(());
    };
    let form = match (with_values, reply.proto) {
        (false, _) => Form::Name,
        (true, Proto::Resp2) => Form::Both,
        (true, Proto::Resp3) => Form::Pair,
    };
    let many = if count < 0 {
        repeated(count)?
    } else {
        (hash.len() as u64).min(count as u64)
    };
    let flat = if form == Form::Both { 2 } else { 1 };
    reply.array(many as usize * flat);
    if count < 0 {
        made::write::<Hash>(hash, Draws::new(many, form, ctx.rng), reply);
        return Ok(());
    }
    if many as usize == hash.len() {
        made::write::<Hash>(hash, All::of(hash, form), reply);
        return Ok(());
    }
    draw_different(hash, many as usize, ctx.rng, |field, value| {
        form.write(reply, field, value);
    });
    Ok(())
}

fn parse(args: &Args<'_>) -> Result<(i64, bool), Failure> {
    let count = draws(args.get(2))?;
    let with_values = args.len() > 3;
    if args.len() > 4 || with_values && !is(args.get(3), "WITHVALUES") {
        return Err(Failure::SYNTAX);
    }
    if with_values && !(-(i64::MAX / 2)..=i64::MAX / 2).contains(&count) {
        return Err(Failure::OUT_OF_RANGE);
    }
    Ok((count, with_values))
}

#[cfg(test)]
crate::testing::transcripts! {
    any_or_different_ones: "
        HRANDFIELD k => $-1
        HRANDFIELD k 3 => *0
        HSET k a 1 => :1
        HRANDFIELD k => 'a'
        HRANDFIELD k 0 => *0
        HRANDFIELD k 3 => *1 'a'
        HRANDFIELD k -2 => *2 'a' 'a'
        HRANDFIELD k 3 withvalues => *2 'a' '1'
        resp3: HRANDFIELD k -1 WITHVALUES => *1 *2 'a' '1'
    "

    refusals: "
        HRANDFIELD k 1 x => -ERR syntax error
        HRANDFIELD k 1 WITHVALUES 2 => -ERR syntax error
        HRANDFIELD k x => -ERR value is not an integer or out of range
        HRANDFIELD k -9223372036854775807 WITHVALUES => -ERR value is out of range
    "
}
