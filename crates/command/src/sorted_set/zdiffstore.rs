//! ZDIFFSTORE: what one set has and others have not as the value of a key.

use super::algebra::{Operation, store};
use crate::{Ctx, Failure, Reply, command};
use rufous_base::Args;

command! {
    /// Stores the members of the first sorted set that are in none of the others and returns how
    /// many there are.
    ZDIFFSTORE = run: "zdiffstore", syntax "destination numkeys key [key ...]", arity -4,
    group SortedSet, since "6.2.0", flags WRITE | DENYOOM | MOVABLE_KEYS,
    complexity "O(N K) + O(M log(M)) with N members in the first of K sets and M in the result",
    keys super::numbered::TARGET_AND_KEYS,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    store(ctx, &args, reply, ("zdiffstore", Operation::Diff))
}

#[cfg(test)]
crate::testing::transcripts! {
    stores_what_others_do_not_have: "
        ZADD a 1 x 2 y => :2
        ZADD b 5 y => :1
        ZDIFFSTORE a 2 a b => :1
        ZRANGE a 0 -1 => *1 'x'
    "
}
