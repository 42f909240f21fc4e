//! RANK.MAX: the first of a ranking.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
command! {
    /// Returns the highest member of a ranking and its score; null where there is none.
    MAX = run: "rank.max", syntax "key", arity 2, group Claret, since "7.2.0",
    flags READONLY | FAST, complexity "O(1)", keys Keys::FIRST,
}

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
