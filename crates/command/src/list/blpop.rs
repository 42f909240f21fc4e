//! BLPOP: takes the first element of the first of several lists that there is, or waits for one.

use super::End;
use super::blocking::pop;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Takes the first element of the first list that has one; waits where none has.
    BLPOP = run: "blpop", syntax "key [key ...] timeout", arity -3, group List, since "2.0.0",
    flags WRITE | NOSCRIPT | BLOCKING | OF_EACH, complexity "O(N) where N is the number of keys",
    keys Keys::BUT_LAST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    pop(ctx, &args, End::Left, reply)
}
