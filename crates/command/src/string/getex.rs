//! GETEX: returns a value and changes its expiry.

use super::set::ExpiryUnit;
use crate::options::is;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns the string at a key and may set or remove its expiry.
    GETEX = run: "getex",
    syntax "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST]",
    arity -2, group String, since "6.2.0", flags WRITE | FAST, complexity "O(1)", keys Keys::FIRST,
}

/// What becomes of the expiry.
enum Change<'a> {
    None,
    Persist,
    /// The time is read once the key is known to exist.
    At(ExpiryUnit, &'a [u8]),
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let change = parse(&args)?;
    let key = ctx.first_key(args.get(1));
    let now_ms = ctx.time_ms(key);
    match ctx.shard.get(ctx.db, key, ctx.now)? {
        Some(value) => reply.value(value),
        None => {
            reply.null();
            return Ok(());
        }
    }
    match change {
        Change::None => {}
        Change::Persist => {
            if let Some(Some(_)) = ctx.shard.expire_at(ctx.db, key, ctx.now) {
                ctx.shard.set_expire_at(ctx.db, key, None, ctx.now);
            }
        }
        Change::At(unit, arg) => {
            let at = unit.expire_at(arg, now_ms, "getex")?;
            if at <= now_ms {
                ctx.shard.remove(ctx.db, key, ctx.now);
            } else {
                ctx.shard.set_expire_at(ctx.db, key, Some(at), ctx.now);
            }
        }
    }
    Ok(())
}

fn parse<'a>(args: &'a Args<'_>) -> Result<Change<'a>, Failure> {
    let mut change = Change::None;
    let mut at = 2;
    while at < args.len() {
        let word = args.get(at);
        change = match (change, ExpiryUnit::parse(word)) {
            (Change::None | Change::Persist, None) if is(word, "PERSIST") => Change::Persist,
            (Change::None, Some(unit)) if at + 1 < args.len() => {
                at += 1;
                Change::At(unit, args.get(at))
            }
            // The same unit again is taken, and the last time counts.
            (Change::At(before, _), Some(unit)) if before == unit && at + 1 < args.len() => {
                at += 1;
                Change::At(unit, args.get(at))
            }
            _ => return Err(Failure::SYNTAX),
        };
        at += 1;
    }
    Ok(change)
}

#[cfg(test)]
crate::testing::transcripts! {
    sets_and_removes_the_expiry: "
        SET k v => +OK
        GETEX k => 'v'
        GETEX k PX 10 => 'v'
        GETEX k => 'v'
        GETEX k PERSIST => 'v'
        after 20 ms: GETEX k ex 1 => 'v'
        after 999 ms: GET k => 'v'
        after 1 ms: GETEX k PERSIST => $-1
    "

    refuses_what_contradicts_itself: "
        SET k v => +OK
        GETEX k EX => -ERR syntax error
        GETEX k EX 1 PX 1 => -ERR syntax error
        GETEX k EX 1 PERSIST => -ERR syntax error
        GETEX k PERSIST EX 1 => -ERR syntax error
        GETEX k KEEPTTL => -ERR syntax error
        GETEX k NX => -ERR syntax error
        GETEX k GET => -ERR syntax error
        GETEX k EXAT 1 EX 1 => -ERR syntax error
        GETEX k x => -ERR syntax error
        GETEX k EX 0 => -ERR invalid expire time in 'getex' command
        GETEX k PX -1 => -ERR invalid expire time in 'getex' command
        GETEX k EX 9223372036854775807 => -ERR invalid expire time in 'getex' command
        GETEX k EX 1 EX 0 => -ERR invalid expire time in 'getex' command
        GETEX k EX x => -ERR value is not an integer or out of range
        GETEX none EX x => $-1
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn a_time_in_the_past_removes_the_key() {
        let mut rig = Rig::new();
        rig.check("SET k v", "+OK");
        rig.check("GETEX k PXAT 1", "'v'");
        rig.check("GETEX k", "$-1");
        assert_eq!(rig.shard.len(0), 0);
    }
}
