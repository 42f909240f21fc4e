//! BCOUNT.SET: makes a bounded counter, or sets one.

use crate::{Ctx, Failure, Keys, Reply, command, options};
use rufous_base::Args;
use rufous_datatype::bounded::{self, Counter, Op};

command! {
    /// Sets the value and the bounds of a bounded counter, creating it where it is missing. Bounds
    /// that are not given stay; those of a new counter are 0 and the largest integer.
    SET = run: "bcount.set", syntax "key value [MIN min] [MAX max]", arity -3, group Claret,
    since "7.2.0", flags WRITE | DENYOOM | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let (mut min, mut max) = (None, None);
    for at in (3..args.len()).step_by(2) {
        let bound = match args.get(at) {
            word if options::is(word, "MIN") => &mut min,
            word if options::is(word, "MAX") => &mut max,
            _ => return Err(Failure::SYNTAX),
        };
        if bound.is_some() || at + 1 == args.len() {
            return Err(Failure::SYNTAX);
        }
        *bound = Some(options::integer(args.get(at + 1))?);
    }
    let value = options::integer(args.get(2))?;
    let (least, greatest) = match super::ask(ctx, &args, &Op::Bounds)? {
        bounded::Reply::Bounds(least, greatest) => (least, greatest),
        _ => (0, i64::MAX),
    };
    let counter = Counter {
        value,
        min: min.unwrap_or(least),
        max: max.unwrap_or(greatest),
    };
    if !counter.is_sound() {
        return Err("ERR value is out of bounds".into());
    }
    super::change(ctx, &args, &Op::Set(counter))?;
    reply.ok();
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    bounds_stay_where_none_are_given: "
        BCOUNT.SET k 5 => +OK
        BCOUNT.BOUNDS k => *2 :0 :9223372036854775807
        BCOUNT.SET k 5 max 10 min -1 => +OK
        BCOUNT.SET k 10 => +OK
        BCOUNT.BOUNDS k => *2 :-1 :10
        BCOUNT.SET k 11 => -ERR value is out of bounds
        BCOUNT.SET k 11 MAX 11 => +OK
        BCOUNT.GET k => :11
        TYPE k => +bcount
        object|encoding encoding k => 'int'
    "

    wrong_arguments_and_types: "
        BCOUNT.SET k -1 => -ERR value is out of bounds
        BCOUNT.SET k 1 MIN 5 MAX 2 => -ERR value is out of bounds
        BCOUNT.SET k 1 MIN => -ERR syntax error
        BCOUNT.SET k 1 MIN 0 MIN 0 => -ERR syntax error
        BCOUNT.SET k x => -ERR value is not an integer or out of range
        EXISTS k => :0
        SET s v => +OK
        BCOUNT.SET s 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        BCOUNT.ADD s 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        BCOUNT.INCRBY s 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
        BCOUNT.GET s => -WRONGTYPE Operation against a key holding the wrong kind of value
        BCOUNT.BOUNDS s => -WRONGTYPE Operation against a key holding the wrong kind of value
        GET s => 'v'
    "
}
