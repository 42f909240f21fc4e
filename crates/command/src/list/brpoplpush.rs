//! BRPOPLPUSH: BLMOVE from the right end to the left one.

use super::End;
use super::blocking::shift;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Moves the last element of a list to the front of another and returns it; waits where there
    /// is none.
    BRPOPLPUSH = run: "brpoplpush", syntax "source destination timeout", arity 4, group List,
    since "2.2.0", flags WRITE | DENYOOM | NOSCRIPT | BLOCKING, complexity "O(1)",
    keys Keys::FIRST_TWO,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    shift(ctx, &args, (End::Right, End::Left), args.get(3), reply)
}
