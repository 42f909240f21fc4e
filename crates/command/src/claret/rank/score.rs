//! RANK.SCORE: the score of a member.

use crate::{Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec};
use rufous_base::Args;
pub static SCORE: Command = Command {
    spec: Spec {
        name: "rank.score",
        summary: "Returns the score of a member of a ranking; null where it is none.",
        since: "7.2.0",
        group: Group::Claret,
        complexity: "O(1)",
        arity: 3,
        flags: Flags::READONLY.or(Flags::FAST),
        keys: Keys::FIRST,
        syntax: "key member",
    },
    run,
};

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    match super::ranking(ctx, &args)?.and_then(|ranking| ranking.score(args.get(2))) {
        Some(score) => reply.double(score),
        None => reply.null(),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn null_of_others() {
        let mut rig = Rig::new();
        rig.check("RANK.SCORE k a", "$-1\r\n");
        rig.check("RANK.ADD k 1 1 a 2 b", "+OK\r\n");
        rig.check("RANK.SCORE k a", "$-1\r\n");
        rig.check("RANK.SCORE k b", "$1\r\n2\r\n");
    }
}
