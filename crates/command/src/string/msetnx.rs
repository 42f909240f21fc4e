//! MSETNX: gives several keys their values if none of them exists.

use super::mset::{KEYS, check_pairs, set_all};
use super::warm;
use crate::{Ctx, Failure, Reply, command};
use rufous_base::Args;
use rufous_kernel::shard::Key;

command! {
    /// Sets the strings at several keys, all at once, if none of the keys exists yet.
    MSETNX = run: "msetnx", syntax "key value [key value ...]", arity -3, group String,
    since "1.0.1", flags WRITE | DENYOOM | PAIRS | IF_MISSING, complexity "O(N) with N keys", keys KEYS,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    check_pairs(&args, "msetnx")?;
    let free = !any_exists(ctx, &args);
    if free {
        set_all(ctx, args);
    }
    reply.integer(free.into());
    Ok(())
}

fn any_exists(ctx: &mut Ctx<'_>, args: &Args<'_>) -> bool {
    let mut at = 1;
    while at < args.len() {
        for &hash in warm::group(ctx, args, at, 2).hashes() {
            let bytes = args.get(at);
            if ctx.shard.contains(ctx.db, Key { bytes, hash }, ctx.now) {
                return true;
            }
            at += 2;
        }
    }
    false
}

#[cfg(test)]
crate::testing::transcripts! {
    all_or_nothing: "
        MSETNX a 1 b 2 => :1
        MSETNX c 3 b 4 => :0
        MGET a b c => *3 '1' '2' $-1
        MSETNX d 1 d 2 => :1
        GET d => '2'
        MSETNX a 1 b => -ERR wrong number of arguments for 'msetnx' command
    "
}
