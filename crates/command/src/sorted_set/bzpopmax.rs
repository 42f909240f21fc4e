//! BZPOPMAX: takes the member with the highest score of the first of several sorted sets that there is, or
//! waits for one.

use super::blocking;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Takes the member with the highest score of the first sorted set that has one; waits where
    /// none has.
    BZPOPMAX = run: "bzpopmax", syntax "key [key ...] timeout", arity -3, group SortedSet,
    since "5.0.0", flags WRITE | NOSCRIPT | FAST | BLOCKING | OF_EACH,
    complexity "O(log(N)) with N members in the set", keys Keys::BUT_LAST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    blocking::run(ctx, &args, reply, true)
}
