//! HMGET: the values of several fields.

use super::read;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the values of several fields of a hash, nil for each that is missing.
    HMGET = run: "hmget", syntax "key field [field ...]", arity -3, group Hash, since "2.0.0",
    flags READONLY | FAST, complexity "O(N) with N fields", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let hash = read(ctx, args.get(1))?;
    reply.array(args.len() - 2);
    for field in args.iter_from(2) {
        match hash.and_then(|hash| hash.get(field)) {
            Some(value) => reply.bulk(value),
            None => reply.null(),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn values_in_the_order_of_the_fields() {
        let mut rig = Rig::new();
        rig.check("HMGET k a b", "*2\r\n$-1\r\n$-1\r\n");
        rig.check("HSET k a 1 b 2", ":2\r\n");
        rig.check("HMGET k b x a", "*3\r\n$1\r\n2\r\n$-1\r\n$1\r\n1\r\n");
        rig.check("SET s v", "+OK\r\n");
        rig.check(
            "HMGET s a",
            "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
        );
    }
}
