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
mod tests {
    use crate::testing::Rig;

    #[test]
    fn value_and_expiry_move() {
        let mut rig = Rig::new();
        rig.check("MOVE k 1", ":0\r\n");
        rig.check("SET k 1 PX 1000", "+OK\r\n");
        rig.check("MOVE k 1", ":1\r\n");
        rig.check("EXISTS k", ":0\r\n");
        rig.check("SET k 2", "+OK\r\n");
        rig.check("MOVE k 1", ":0\r\n");
        rig.check("GET k", "$1\r\n2\r\n");
        rig.db = 1;
        rig.check("GET k", "$1\r\n1\r\n");
        rig.check("PTTL k", ":1000\r\n");
        // A key that has expired there is not in the way.
        rig.db = 0;
        rig.advance_ms(2000).check("MOVE k 1", ":1\r\n");
    }

    #[test]
    fn refused() {
        let mut rig = Rig::new();
        rig.check(
            "MOVE k 0",
            "-ERR source and destination objects are the same\r\n",
        );
        rig.check("MOVE k 16", "-ERR DB index is out of range\r\n");
        rig.check("MOVE k -1", "-ERR DB index is out of range\r\n");
        rig.check(
            "MOVE k x",
            "-ERR value is not an integer or out of range\r\n",
        );
        rig.check(
            "MOVE k 99999999999999",
            "-ERR value is out of range, value must between -2147483648 and 2147483647\r\n",
        );
    }
}
