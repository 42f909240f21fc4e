//! MOVE: brings a key to another database.

use super::copy::{SAME_KEY, target_database};
use crate::options;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Moves a key to another database unless it exists there.
    MOVE = run: "move", syntax "key db", arity 3, group Generic, since "1.0.0", flags WRITE | FAST,
    complexity "O(1)", keys Keys::Custom {
        find,
        shown: (1, 1, 1),
    },
}

/// The same name in both databases. Of a request that cannot run, the
/// selected one will do.
fn find(args: &Args<'_>, db: u8, keys: &mut Vec<(u8, u32)>) {
    keys.push((db, 1));
    if let Ok(target) = options::database(args.get(2)) {
        keys.push((target, 1));
    }
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let target = usize::from(target_database(args.get(2))?);
    if target == ctx.db {
        return Err(SAME_KEY);
    }
    let key = ctx.first_key(args.get(1));
    let may = ctx.shard.contains(ctx.db, key, ctx.now) && !ctx.shard.contains(target, key, ctx.now);
    if may {
        ctx.shard.rename((ctx.db, key), (target, key), ctx.now);
    }
    reply.integer(i64::from(may));
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    value_and_expiry_move: "
        MOVE k 1 => :0
        SET k 1 PX 1000 => +OK
        MOVE k 1 => :1
        EXISTS k => :0
        SET k 2 => +OK
        MOVE k 1 => :0
        GET k => '2'
        database 1: GET k => '1'
        PTTL k => :1000
        // A key that has expired there is not in the way.
        database 0: after 2000 ms: MOVE k 1 => :1
    "

    refused: "
        MOVE k 0 => -ERR source and destination objects are the same
        MOVE k 16 => -ERR DB index is out of range
        MOVE k -1 => -ERR DB index is out of range
        MOVE k x => -ERR value is not an integer or out of range
        MOVE k 99999999999999 => -ERR value is out of range, value must between -2147483648 and 2147483647
    "
}
