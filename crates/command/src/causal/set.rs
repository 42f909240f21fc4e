//! CAUSAL.SET: writes a value in the place of what a token has seen.

use crate::string::set::ExpiryUnit;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_datatype::replicated::token;

command! {
    /// Sets a key in the place of those of its values that the token has seen; others stay beside
    /// it. Returns the token of who has written. The value may have a deadline of its own.
    SET = run: "causal.set",
    syntax "key token value [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds]",
    arity -4, group String, since "7.2.0", flags WRITE | DENYOOM | FAST,
    complexity "O(N) where N is the number of concurrent values", keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let key = ctx.first_key(args.get(1));
    let now_ms = ctx.time_ms(key);
    let value = match deadline(&args, now_ms)? {
        // Dead on arrival: what was seen is gone, and nothing takes its place.
        Some(at) if at <= now_ms => None,
        at => Some((args.get(3), at.unwrap_or(0))),
    };
    let written = super::write(ctx, key, args.get(2), value)?;
    reply.bulk(&token::encode(ctx.db as u8, key.bytes, &written.seen));
    Ok(())
}

fn deadline(args: &Args<'_>, now_ms: u64) -> Result<Option<u64>, Failure> {
    if args.len() == 4 {
        return Ok(None);
    }
    let unit = ExpiryUnit::parse(args.get(4)).filter(|_| args.len() == 6);
    let unit = unit.ok_or(Failure::SYNTAX)?;
    unit.expire_at(args.get(5), now_ms, "causal.set").map(Some)
}
