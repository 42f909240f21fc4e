//! HVALS: all values of a hash.

use super::read;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns all values of a hash.
    HVALS = run: "hvals", syntax "key", arity 2, group Hash, since "2.0.0", flags READONLY,
    complexity "O(N) with N fields", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let Some(hash) = read(ctx, args.get(1))? else {
        reply.array(0);
        return Ok(());
    };
    reply.array(hash.len());
    hash.each(|_, value| reply.bulk(value));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn all_of_them() {
        let mut rig = Rig::new();
        rig.check("HVALS k", "*0\r\n");
        rig.check("HSET k a 1 b 2", ":2\r\n");
        rig.check("HVALS k", "*2\r\n$1\r\n1\r\n$1\r\n2\r\n");
        rig.resp3().check("HVALS none", "*0\r\n");
    }
}
