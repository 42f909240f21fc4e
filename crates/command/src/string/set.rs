//! SET: gives a key a value, on conditions, with an expiry.

use crate::options::is;
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_kernel::shard::{ExpirySetting, NewValue};

command! {
    /// Gives a key a string value, whatever it held before, on conditions and with an expiry where
    /// asked to.
    SET = run: "set",
    syntax "key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
    arity -3, group String, since "1.0.0", flags WRITE | DENYOOM, complexity "O(1)",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, mut args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    if args.len() > 3 {
        return with_options(ctx, args, reply);
    }
    let big = args.take_big(2);
    let key = ctx.first_key(args.get(1));
    let value = new_value(big, args.get(2));
    ctx.shard
        .set(ctx.db, key, value, ExpirySetting::Clear, ctx.now);
    reply.ok();
    Ok(())
}

/// The value of an argument that may have been taken out, to keep it without a copy.
#[inline]
pub(super) fn new_value(big: Option<Vec<u8>>, small: &[u8]) -> NewValue<'_> {
    match big {
        Some(bytes) => NewValue::Own(bytes),
        None => NewValue::Copy(small),
    }
}

#[derive(Default)]
pub(crate) struct Options {
    pub(crate) only_if_absent: bool,
    pub(crate) only_if_present: bool,
    pub(crate) get: bool,
    pub(crate) keep_ttl: bool,
    pub(crate) expire_at: Option<u64>,
}

fn with_options(
    ctx: &mut Ctx<'_>,
    mut args: Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Failure> {
    let now_ms = ctx.time_ms(ctx.first_key(args.get(1)));
    let options = parse(&args, now_ms)?;
    let big = args.take_big(2);
    let key = ctx.first_key(args.get(1));
    let present = if options.get {
        match ctx.shard.get(ctx.db, key, ctx.now)? {
            Some(value) => {
                reply.value(value);
                true
            }
            None => {
                reply.null();
                false
            }
        }
    } else {
        (options.only_if_absent || options.only_if_present)
            && ctx.shard.contains(ctx.db, key, ctx.now)
    };
    if options.only_if_absent && present || options.only_if_present && !present {
        if !options.get {
            reply.null();
        }
        return Ok(());
    }
    match options.expire_at {
        // The deadline has already passed: the previous value is removed, and none replaces it.
        Some(at) if at <= now_ms => {
            ctx.shard.remove(ctx.db, key, ctx.now);
        }
        expire_at => {
            let expiry = match expire_at {
                Some(at) => ExpirySetting::At(at),
                None if options.keep_ttl => ExpirySetting::Keep,
                None => ExpirySetting::Clear,
            };
            let value = new_value(big, args.get(2));
            ctx.shard.set(ctx.db, key, value, expiry, ctx.now);
        }
    }
    if !options.get {
        reply.ok();
    }
    Ok(())
}

pub(crate) fn parse(args: &Args<'_>, now_ms: u64) -> Result<Options, Failure> {
    let mut options = Options::default();
    let mut expiry: Option<(ExpiryUnit, &[u8])> = None;
    let mut at = 3;
    while at < args.len() {
        let word = args.get(at);
        if is(word, "NX") && !options.only_if_present {
            options.only_if_absent = true;
        } else if is(word, "XX") && !options.only_if_absent {
            options.only_if_present = true;
        } else if is(word, "GET") {
            options.get = true;
        } else if is(word, "KEEPTTL") && expiry.is_none() {
            options.keep_ttl = true;
        } else if let Some(unit) = ExpiryUnit::parse(word)
            // The same unit again is taken, and the last time counts.
            && expiry.is_none_or(|(before, _)| before == unit)
            && !options.keep_ttl
            && at + 1 < args.len()
        {
            at += 1;
            expiry = Some((unit, args.get(at)));
        } else {
            return Err(Failure::SYNTAX);
        }
        at += 1;
    }
    // The time is looked at last: a syntax error anywhere comes first.
    if let Some((unit, arg)) = expiry {
        options.expire_at = Some(unit.expire_at(arg, now_ms, "set")?);
    }
    Ok(options)
}

/// EX, PX, EXAT and PXAT, as several commands take them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpiryUnit {
    seconds: bool,
    absolute: bool,
}

impl ExpiryUnit {
    pub const SECONDS: ExpiryUnit = ExpiryUnit {
        seconds: true,
        absolute: false,
    };
    pub const MILLISECONDS: ExpiryUnit = ExpiryUnit {
        seconds: false,
        absolute: false,
    };

    pub fn parse(word: &[u8]) -> Option<ExpiryUnit> {
        let unit = |seconds, absolute| Some(ExpiryUnit { seconds, absolute });
        match word {
            w if is(w, "EX") => unit(true, false),
            w if is(w, "PX") => unit(false, false),
            w if is(w, "EXAT") => unit(true, true),
            w if is(w, "PXAT") => unit(false, true),
            _ => None,
        }
    }

    /// When something set now with `arg` in this unit expires, in Unix
    /// milliseconds. Zero, negative and overflowing times are refused.
    pub fn expire_at(self, arg: &[u8], now_ms: u64, command: &str) -> Result<u64, Failure> {
        let invalid = || Failure(format!("ERR invalid expire time in '{command}' command").into());
        let given = crate::options::integer(arg)?;
        if given <= 0 {
            return Err(invalid());
        }
        let ms = if self.seconds {
            given.checked_mul(1000).ok_or_else(invalid)?
        } else {
            given
        };
        let base = if self.absolute { 0 } else { now_ms as i64 };
        ms.checked_add(base).map(|at| at as u64).ok_or_else(invalid)
    }
}

#[cfg(test)]
crate::testing::transcripts! {
    conditions_and_the_old_value: "
        SET k v XX => $-1
        SET k v nx => +OK
        SET k w NX => $-1
        SET k w XX GET => 'v'
        SET k x NX GET => 'w'
        GET k => 'w'
        SET new x GET => $-1
        SET k v NX XX => -ERR syntax error
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn expiry_in_every_unit() {
        let mut rig = Rig::new();
        rig.check("SET k v EX 10", "+OK");
        rig.advance_ms(9_999).check("GET k", "'v'");
        rig.check("SET k w KEEPTTL", "+OK");
        rig.advance_ms(2).check("GET k", "$-1");
        rig.check("SET k v PX 10", "+OK");
        rig.check("SET k v", "+OK");
        rig.advance_ms(100).check("GET k", "'v'");
        rig.check("SET k v PXAT 1", "+OK");
        assert_eq!(rig.shard.len(0), 0);
        rig.check("GET k", "$-1");
        rig.check("SET k v EX 0", "-ERR invalid expire time in 'set' command");
        rig.check(
            "SET k v EX 9223372036854775807",
            "-ERR invalid expire time in 'set' command",
        );
        rig.check("SET k v EX", "-ERR syntax error");
        rig.check("SET k v EX 1 PX 1", "-ERR syntax error");
        rig.check("SET k v EX 1 KEEPTTL", "-ERR syntax error");
        rig.check("SET k v EX x y", "-ERR syntax error");
        rig.check("SET k v KEEPTTL EX 1", "-ERR syntax error");
        rig.check("SET k v EX 0 EX 1 KEEP", "-ERR syntax error");
        rig.check("SET k v EX 0 EX 1", "+OK");
        rig.advance_ms(1000).check("GET k", "$-1");
        rig.check("SET k v PERSIST", "-ERR syntax error");
        rig.check(
            "SET k v EX x",
            "-ERR value is not an integer or out of range",
        );
    }
}
