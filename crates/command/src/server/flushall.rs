//! FLUSHALL: empties every database.

use crate::options::is;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_base::limits::DATABASES;

command! {
    /// Removes all keys of all databases.
    FLUSHALL = run: "flushall", syntax "[ASYNC | SYNC]", arity -1, group Server, since "1.0.0",
    flags WRITE | SLOW | ALL_KEYS | DANGEROUS, complexity "O(1) for clients; memory is freed by another thread",
    keys Keys::None,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    check_mode(&args)?;
    for db in 0..DATABASES {
        ctx.shard.flush(db);
    }
    reply.ok();
    Ok(())
}

/// SYNC or ASYNC may be said and change nothing: databases are always freed by
/// another thread.
pub fn check_mode(args: &Args<'_>) -> Result<(), Failure> {
    match args.len() {
        1 => Ok(()),
        2 if is(args.get(1), "ASYNC") || is(args.get(1), "SYNC") => Ok(()),
        _ => Err(Failure::SYNTAX),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn empties_every_database() {
        let mut rig = Rig::new();
        for db in [0, 7, 15] {
            rig.db = db;
            rig.check("SET k v", "+OK");
        }
        rig.check("FLUSHALL foo", "-ERR syntax error");
        rig.check("FLUSHALL SYNC ASYNC", "-ERR syntax error");
        rig.check("GET k", "'v'");
        rig.check("FLUSHALL async", "+OK");
        for db in [0, 7, 15] {
            rig.db = db;
            rig.check("GET k", "$-1");
        }
        rig.check("FLUSHALL", "+OK");
    }
}
