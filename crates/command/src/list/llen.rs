//! LLEN: how long a list is.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the length of a list, 0 where it is missing.
    LLEN = run: "llen", syntax "key", arity 2, group List, since "1.0.0", flags READONLY | FAST,
    complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let view = super::read(ctx, args.get(1))?;
    reply.count(view.map_or(0, |view| view.len()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn of_lists_and_nothing_else() {
        let mut rig = Rig::new();
        rig.check("LLEN k", ":0\r\n");
        rig.check("RPUSH k a b", ":2\r\n");
        rig.check("LLEN k", ":2\r\n");
        rig.check("SET s v", "+OK\r\n");
        rig.check(
            "LLEN s",
            "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
        );
    }
}
