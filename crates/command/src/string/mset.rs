//! MSET: gives several keys their values at once.

use super::set::new_value;
use super::warm;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_kernel::shard::{ExpirySetting, Key};

/// Every other argument is a key.
pub(super) const KEYS: Keys = Keys::Range {
    first: 1,
    last: -1,
    step: 2,
};

command! {
    /// Sets the strings at several keys, all at once.
    MSET = run: "mset", syntax "key value [key value ...]", arity -3, group String, since "1.0.1",
    flags WRITE | DENYOOM | PAIRS, complexity "O(N) with N keys", keys KEYS,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    check_pairs(&args, "mset")?;
    set_all(ctx, args);
    reply.ok();
    Ok(())
}

/// Refuses a key without a value.
pub(super) fn check_pairs(args: &Args<'_>, command: &str) -> Result<(), Failure> {
    if args.len().is_multiple_of(2) {
        return Err(Failure::wrong_arity(command));
    }
    Ok(())
}

/// Sets each pair in turn: of a key that is named twice, the last value stays.
pub(super) fn set_all(ctx: &mut Ctx<'_>, mut args: Args<'_>) {
    let mut at = 1;
    while at < args.len() {
        for &hash in warm::group(ctx, &args, at, 2).hashes() {
            let big = args.take_big(at + 1);
            let bytes = args.get(at);
            let value = new_value(big, args.get(at + 1));
            let key = Key { bytes, hash };
            ctx.shard
                .set(ctx.db, key, value, ExpirySetting::Clear, ctx.now);
            at += 2;
        }
    }
}

#[cfg(test)]
crate::testing::transcripts! {
    sets_all_and_clears_expiries: "
        SET a 0 PX 10 => +OK
        MSET a 1 b 2 a 3 => +OK
        after 100 ms: MGET a b => *2 '3' '2'
    "

    refuses_a_key_without_a_value: "
        MSET a 1 b => -ERR wrong number of arguments for 'mset' command
        GET a => $-1
    "
}
