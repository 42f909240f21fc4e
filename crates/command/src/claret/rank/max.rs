//! RANK.MAX: the first of a ranking.

use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;
pub static MAX: Command = Command {
    spec: Spec {
        name: "rank.max",
        summary: "Returns the highest member of a ranking and its score; null where there is none.",
        since: "7.2.0",
        group: Group::Claret,
        complexity: "O(1)",
        arity: 2,
        flags: Flags::READONLY.or(Flags::FAST),
        keys: Keys::FIRST,
        syntax: "key",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    match super::ranking(ctx, &args)?.and_then(|ranking| ranking.at(0)) {
        Some((member, score)) => {
            reply.array(2);
            reply.bulk(member);
            reply.double(score);
        }
        None => reply.null_array(),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn member_and_score() {
        let mut rig = Rig::new();
        rig.check("RANK.MAX k", "*-1\r\n");
        rig.check("RANK.ADD k 3 1 a 2.5 b", "+OK\r\n");
        rig.check("RANK.MAX k", "*2\r\n$1\r\nb\r\n$3\r\n2.5\r\n");
        rig.resp3().check("RANK.MAX k", "*2\r\n$1\r\nb\r\n,2.5\r\n");
    }
}
