//! SMEMBERS: all members of a set.

use super::read;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns all members of a set.
    SMEMBERS = run: "smembers", syntax "key", arity 2, group Set, since "1.0.0", flags READONLY,
    complexity "O(N) with N members", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let Some(set) = read(ctx, args.get(1))? else {
        reply.set(0);
        return Ok(());
    };
    reply.set(set.len());
    set.each(|member, _| reply.bulk(member));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn all_of_them() {
        let mut rig = Rig::new();
        rig.check("SMEMBERS k", "*0\r\n");
        rig.check("SADD k b a", ":2\r\n");
        rig.check("SMEMBERS k", "*2\r\n$1\r\nb\r\n$1\r\na\r\n");
        rig.resp3()
            .check("SMEMBERS k", "~2\r\n$1\r\nb\r\n$1\r\na\r\n");
    }
}
