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
mod tests {
    use crate::testing::Rig;

    #[test]
    fn bounds_stay_where_none_are_given() {
        let mut rig = Rig::new();
        rig.check("BCOUNT.SET k 5", "+OK\r\n");
        rig.check("BCOUNT.BOUNDS k", "*2\r\n:0\r\n:9223372036854775807\r\n");
        rig.check("BCOUNT.SET k 5 max 10 min -1", "+OK\r\n");
        rig.check("BCOUNT.SET k 10", "+OK\r\n");
        rig.check("BCOUNT.BOUNDS k", "*2\r\n:-1\r\n:10\r\n");
        rig.check("BCOUNT.SET k 11", "-ERR value is out of bounds\r\n");
        rig.check("BCOUNT.SET k 11 MAX 11", "+OK\r\n");
        rig.check("BCOUNT.GET k", ":11\r\n");
        rig.check("TYPE k", "+bcount\r\n");
        rig.check("object|encoding encoding k", "$3\r\nint\r\n");
    }

    #[test]
    fn wrong_arguments_and_types() {
        let mut rig = Rig::new();
        rig.check("BCOUNT.SET k -1", "-ERR value is out of bounds\r\n");
        rig.check(
            "BCOUNT.SET k 1 MIN 5 MAX 2",
            "-ERR value is out of bounds\r\n",
        );
        rig.check("BCOUNT.SET k 1 MIN", "-ERR syntax error\r\n");
        rig.check("BCOUNT.SET k 1 MIN 0 MIN 0", "-ERR syntax error\r\n");
        rig.check(
            "BCOUNT.SET k x",
            "-ERR value is not an integer or out of range\r\n",
        );
        rig.check("EXISTS k", ":0\r\n");
        let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
        rig.check("SET s v", "+OK\r\n");
        for command in ["SET s 1", "ADD s 1", "INCRBY s 1", "GET s", "BOUNDS s"] {
            rig.check(&format!("BCOUNT.{command}"), wrong);
        }
        rig.check("GET s", "$1\r\nv\r\n");
    }
}
