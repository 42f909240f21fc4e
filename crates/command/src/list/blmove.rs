//! BLMOVE: moves an element from one list to another, or waits for one.

use super::End;
use super::blocking::shift;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Moves an element from one end of a list to one of another and returns it; waits where there
    /// is none.
    BLMOVE = run: "blmove", syntax "source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout",
    arity 6, group List, since "6.2.0", flags WRITE | DENYOOM | NOSCRIPT | BLOCKING,
    complexity "O(1)", keys Keys::FIRST_TWO,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let ends = (End::parse(args.get(3))?, End::parse(args.get(4))?);
    shift(ctx, &args, ends, args.get(5), reply)
}
