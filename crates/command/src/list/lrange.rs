//! LRANGE: a part of a list.

use crate::options::integer;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the elements of a list from one index to another, both included.
    LRANGE = run: "lrange", syntax "key start stop", arity 4, group List, since "1.0.0",
    flags READONLY, complexity "O(log S + N) with N elements returned from a list of S",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let (start, stop) = (integer(args.get(2))?, integer(args.get(3))?);
    let Some(view) = super::read(ctx, args.get(1))? else {
        reply.array(0);
        return Ok(());
    };
    let places = view.places(start, stop);
    reply.array(places.len());
    for element in view.iter_from(places.start).take(places.len()) {
        reply.bulk(element);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn indices_from_both_ends() {
        let mut rig = Rig::new();
        rig.check("RPUSH k a b c", ":3\r\n");
        rig.check("LRANGE k 0 0", "*1\r\n$1\r\na\r\n");
        rig.check("LRANGE k -2 -1", "*2\r\n$1\r\nb\r\n$1\r\nc\r\n");
        rig.check("LRANGE k -100 0", "*1\r\n$1\r\na\r\n");
        rig.check("LRANGE k 2 100", "*1\r\n$1\r\nc\r\n");
        rig.check("LRANGE k 2 1", "*0\r\n");
        rig.check("LRANGE k 3 4", "*0\r\n");
        rig.check("LRANGE k 0 -4", "*0\r\n");
        rig.check("LRANGE none 0 -1", "*0\r\n");
        rig.check(
            "LRANGE none 0 x",
            "-ERR value is not an integer or out of range\r\n",
        );
        rig.check(
            "LRANGE k -9223372036854775808 9223372036854775807",
            "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n",
        );
    }
}
