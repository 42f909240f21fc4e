//! LMOVE: moves an element from a list to another.

use super::{End, transfer};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Takes an element off an end of a list, puts it at an end of another, and returns it.
    LMOVE = run: "lmove", syntax "source destination LEFT | RIGHT LEFT | RIGHT", arity 5,
    group List, since "6.2.0", flags WRITE | DENYOOM, complexity "O(1)", keys Keys::FIRST_TWO,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let (from, to) = (End::parse(args.get(3))?, End::parse(args.get(4))?);
    let (source, target) = (ctx.first_key(args.get(1)), ctx.key(args.get(2)));
    if !transfer(ctx, (source, from), (target, to), reply)? {
        reply.null();
    }
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    between_any_ends: "
        RPUSH a 1 2 3 4 => :4
        LMOVE a b LEFT LEFT => '1'
        LMOVE a b left right => '2'
        LMOVE a b RIGHT LEFT => '4'
        LMOVE a b RIGHT RIGHT => '3'
        EXISTS a => :0
        LMOVE a b RIGHT RIGHT => $-1
        LRANGE b 0 -1 => *4 '4' '1' '2' '3'
        LMOVE b b UP RIGHT => -ERR syntax error
    "

    within_one_list: "
        RPUSH a 1 2 3 => :3
        LMOVE a a LEFT RIGHT => '1'
        LRANGE a 0 -1 => *3 '2' '3' '1'
        LMOVE a a LEFT LEFT => '2'
        RPUSH one 1 => :1
        PEXPIRE one 10 => :1
        LMOVE one one LEFT RIGHT => '1'
        PTTL one => :10
    "

    nothing_is_taken_where_it_cannot_be_put: "
        RPUSH a 1 => :1
        SET s v => +OK
        LMOVE a s LEFT LEFT => -WRONGTYPE Operation against a key holding the wrong kind of value
        LMOVE s a LEFT LEFT => -WRONGTYPE Operation against a key holding the wrong kind of value
        LMOVE none s LEFT LEFT => $-1
        LLEN a => :1
    "
}
