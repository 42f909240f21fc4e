//! HGETALL: all fields with their values.

use super::read;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns all fields of a hash with their values.
    HGETALL = run: "hgetall", syntax "key", arity 2, group Hash, since "2.0.0", flags READONLY,
    complexity "O(N) with N fields", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let Some(hash) = read(ctx, args.get(1))? else {
        reply.map(0);
        return Ok(());
    };
    reply.map(hash.len());
    hash.each(|field, value| {
        reply.bulk(field);
        reply.bulk(value);
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn a_map_or_a_flat_array() {
        let mut rig = Rig::new();
        rig.check("HGETALL k", "*0\r\n");
        rig.check("HSET k a 1 b 2", ":2\r\n");
        let pairs = "$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$1\r\n2\r\n";
        rig.check("HGETALL k", &format!("*4\r\n{pairs}"));
        rig.check("SET s v", "+OK\r\n");
        rig.check(
            "HGETALL s",
            "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
        );
        rig.resp3().check("HGETALL k", &format!("%2\r\n{pairs}"));
        rig.check("HGETALL none", "%0\r\n");
    }
}
