//! UNLINK: removes keys without waiting for their memory to be freed.

use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Removes keys, leaving the release of their memory to another thread.
    UNLINK = run: "unlink", syntax "key [key ...]", arity -2, group Generic, since "4.0.0",
    flags WRITE | FAST | PER_KEY | SUM | OF_EACH,
    complexity "O(1) for each key; memory of large values is freed by another thread",
    keys Keys::ALL,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    super::del::remove(ctx, &args, reply);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    counts_the_keys_that_were_there: "
        SET a 1 => +OK
        SET b 2 => +OK
        UNLINK a none b a => :2
        GET a => $-1
        UNLINK b => :0
    "

    a_key_whose_time_has_come_was_not_there: "
        SET a 1 PX 5 => +OK
        after 10 ms: UNLINK a => :0
    "
}
