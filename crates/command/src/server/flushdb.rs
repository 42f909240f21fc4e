//! FLUSHDB: empties the selected database.

use super::flushall::check_mode;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Removes all keys of the selected database.
    FLUSHDB = run: "flushdb", syntax "[ASYNC | SYNC]", arity -1, group Server, since "1.0.0",
    flags WRITE | SLOW | ALL_KEYS | DANGEROUS, complexity "O(1) for clients; memory is freed by another thread",
    keys Keys::None,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    check_mode(&args)?;
    ctx.shard.flush(ctx.db);
    reply.ok();
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    empties_the_selected_database_alone: "
        SET k v => +OK
        database 1: SET k v => +OK
        FLUSHDB foo => -ERR syntax error
        FLUSHDB sync => +OK
        GET k => $-1
        database 0: GET k => 'v'
    "
}
