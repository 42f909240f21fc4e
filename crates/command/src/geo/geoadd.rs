//! GEOADD: adds positions.

use super::place::position;
use crate::options::is;
use crate::sorted_set::zadd::add;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::sorted_set::Only;

command! {
    /// Adds members with their positions to a sorted set.
    GEOADD = run: "geoadd",
    syntax "key [NX | XX] [CH] longitude latitude member [longitude latitude member ...]",
    arity -5, group Geo, since "3.2.0", flags WRITE | DENYOOM,
    complexity "O(log(N)) for each member, with N members in the set", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let (mut only, mut changed, mut at) = (Only::default(), false, 2);
    loop {
        match args.get(at) {
            word if is(word, "NX") => only.new = true,
            word if is(word, "XX") => only.known = true,
            word if is(word, "CH") => changed = true,
            _ => break,
        }
        at += 1;
    }
    let rest = args.len().saturating_sub(at);
    if rest == 0 || !rest.is_multiple_of(3) || only.new && only.known {
        return Err(Failure::SYNTAX);
    }
    let positions = (at..args.len()).step_by(3).map(|at| position(&args, at));
    let scores: Result<Vec<f64>, Failure> = positions.map(|p| Ok(p?.score())).collect();
    let member = |index: usize| args.get(at + 3 * index + 2);
    let count = add(ctx, args.get(1), (&scores?, member), (only, changed))?;
    reply.integer(count);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    positions_are_scores: "
        GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania => :2
        ZSCORE g Palermo => '3479099956230698'
        GEOADD g NX CH 1 1 Palermo 2 2 Rome => :1
        GEOADD g XX CH 1 1 Palermo 2 2 Milan => :1
        ZCARD g => :3
    "

    refusals: "
        GEOADD g 181 1 a => -ERR invalid longitude,latitude pair 181.000000,1.000000
        GEOADD g x 1 a => -ERR value is not a valid float
        GEOADD g 1 1 a 2 2 => -ERR syntax error
        GEOADD g NX XX 1 1 a => -ERR syntax error
        GEOADD g CH CH CH => -ERR syntax error
        EXISTS g => :0
    "
}
