//! HSTRLEN: how long the value of a field is.

use super::read;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the length of the value of a field, 0 where it is missing.
    HSTRLEN = run: "hstrlen", syntax "key field", arity 3, group Hash, since "3.2.0",
    flags READONLY | FAST, complexity "O(1)", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let value = read(ctx, args.get(1))?.and_then(|hash| hash.get(args.get(2)));
    reply.count(value.map_or(0, <[u8]>::len));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn bytes_or_none() {
        let mut rig = Rig::new();
        rig.check("HSTRLEN k a", ":0\r\n");
        rig.check("HSET k a bcd", ":1\r\n");
        rig.check("HSTRLEN k a", ":3\r\n");
        rig.check("HSTRLEN k bcd", ":0\r\n");
    }
}
