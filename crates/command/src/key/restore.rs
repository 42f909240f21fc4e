//! RESTORE: gives a key the value of a payload of DUMP.

use crate::options::{self, is};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;
use rufous_base::limits::MAX_BULK;
use rufous_datatype::rdb::{self, RdbError, Restored};
use rufous_kernel::shard::{Entry, OwnedValue};
use std::sync::Arc;

command! {
    /// Gives a key the value of a payload of DUMP, from here or from Redis up to 7.2.
    RESTORE = run: "restore",
    syntax "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
    arity -4, group Generic, since "2.6.0", flags WRITE | DENYOOM | SLOW | DANGEROUS,
    complexity "O(N) in the size of the value, O(N log N) for sorted sets", keys Keys::FIRST,
}

#[derive(Default)]
struct Options {
    replace: bool,
    absolute: bool,
    idle_s: Option<i64>,
    counter: Option<u8>,
}

fn parse(args: &Args<'_>) -> Result<Options, Failure> {
    let mut options = Options::default();
    let mut at = 4;
    while at < args.len() {
        let (word, more) = (args.get(at), at + 1 < args.len());
        if is(word, "REPLACE") {
            options.replace = true;
        } else if is(word, "ABSTTL") {
            options.absolute = true;
        } else if is(word, "IDLETIME") && more && options.counter.is_none() {
            at += 1;
            let seconds = options::integer(args.get(at))?;
            if seconds < 0 {
                return Err(Failure::from("ERR Invalid IDLETIME value, must be >= 0"));
            }
            options.idle_s = Some(seconds);
        } else if is(word, "FREQ") && more && options.idle_s.is_none() {
            at += 1;
            let counter = u8::try_from(options::integer(args.get(at))?);
            let error = Failure::from("ERR Invalid FREQ value, must be >= 0 and <= 255");
            options.counter = Some(counter.map_err(|_| error)?);
        } else {
            return Err(Failure::SYNTAX);
        }
        at += 1;
    }
    Ok(options)
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let options = parse(&args)?;
    let key = ctx.first_key(args.get(1));
    let there = ctx.shard.contains(ctx.db, key, ctx.now);
    if there && !options.replace {
        return Err(Failure::from("BUSYKEY Target key name already exists."));
    }
    let expire_at = deadline(ctx, &args, &options)?;
    let value = value(ctx, args.get(3))?;
    if expire_at.is_some_and(|at| at <= ctx.time_ms(key)) {
        // As if it had been there and expired.
        ctx.shard.remove(ctx.db, key, ctx.now);
    } else {
        let access = stamp(ctx, &options);
        let entry = Entry {
            value,
            expire_at,
            access,
        };
        ctx.shard.restore_entry(ctx.db, key, entry, ctx.now);
    }
    reply.ok();
    Ok(())
}

fn deadline(ctx: &Ctx<'_>, args: &Args<'_>, options: &Options) -> Result<Option<u64>, Failure> {
    let invalid = || Failure::from("ERR Invalid TTL value, must be >= 0");
    let ttl = options::integer(args.get(2))?;
    let ttl = u64::try_from(ttl).map_err(|_| invalid())?;
    let base = if options.absolute {
        0
    } else {
        ctx.time_ms(ctx.first_key(args.get(1)))
    };
    // Redis counts in 64 bits with a sign.
    let at = ttl
        .checked_add(base)
        .filter(|&at| i64::try_from(at).is_ok());
    match ttl {
        0 => Ok(None),
        _ => at.map(Some).ok_or_else(invalid),
    }
}

/// The whole value, before anything is done to the key.
fn value(ctx: &Ctx<'_>, payload: &[u8]) -> Result<OwnedValue, Failure> {
    let failure = |error: RdbError| Failure::from(format!("ERR {error}"));
    let read = rdb::read(payload, MAX_BULK as usize).map_err(failure)?;
    let restored = rdb::restore(read, ctx.shard.tuning()).map_err(failure)?;
    Ok(match restored {
        Restored::String(mut bytes) => {
            bytes.shrink_to_fit();
            OwnedValue::Big(Arc::new(bytes))
        }
        // These are for keys whose replicas all take writes, and made there only.
        Restored::Object(object) if object.is_replicated() => {
            return Err(Failure::from("ERR Bad data format"));
        }
        Restored::Object(object) => OwnedValue::Object(object),
    })
}

/// What is said of accesses counts where the policy keeps account of it.
fn stamp(ctx: &Ctx<'_>, options: &Options) -> u32 {
    let policy = ctx.shard.policy();
    match (policy.lfu, options.counter, options.idle_s) {
        (true, Some(counter), _) => policy.counter_stamp(counter, ctx.now),
        (false, _, Some(seconds)) => {
            let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
            policy.idle_stamp(seconds, ctx.now)
        }
        _ => policy.first_stamp(ctx.now),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;
    use rufous_base::rng::Rng;
    use rufous_datatype::rdb::seal;
    use rufous_kernel::shard::Policy;

    fn dump(rig: &mut Rig, key: &[u8]) -> Vec<u8> {
        let reply = rig.run(&[b"DUMP", key]);
        let start = reply.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        reply[start..reply.len() - 2].to_vec()
    }

    fn text(rig: &mut Rig, words: &[&[u8]]) -> String {
        String::from_utf8_lossy(&rig.run(words))
            .trim_end()
            .to_owned()
    }

    #[test]
    fn a_payload_of_redis() {
        let mut rig = Rig::new();
        // Made by redis-server 7.0.15 of `SET k v`.
        let payload = REDIS;
        assert_eq!(text(&mut rig, &[b"RESTORE", b"a", b"0", payload]), "+OK");
        rig.check("GET a", "'v'");
        rig.check("TTL a", ":-1");
        assert_eq!(dump(&mut rig, b"a"), payload);
        let words: [&[u8]; 4] = [b"RESTORE", b"b", b"5000", payload];
        assert_eq!(text(&mut rig, &words), "+OK");
        rig.check("PTTL b", ":5000");
    }

    #[test]
    fn options() {
        let mut rig = Rig::new();
        let mut check = |tail: &str, reply: &str, then: (&str, &str)| {
            let mut words: Vec<&[u8]> = vec![b"RESTORE", b"k"];
            let (ttl, options) = tail.split_once(' ').unwrap_or((tail, ""));
            words.extend([ttl.as_bytes(), REDIS]);
            words.extend(options.split_whitespace().map(str::as_bytes));
            assert_eq!(text(&mut rig, &words), reply, "{tail}");
            rig.check(then.0, then.1);
        };
        let busy = "-BUSYKEY Target key name already exists.";
        let idle = "object|idletime idletime k";
        check("0", "+OK", ("TTL k", ":-1\r\n"));
        check("x", busy, ("TTL k", ":-1\r\n"));
        check("0 idletime 77 replace", "+OK", (idle, ":77\r\n"));
        check("0 FREQ 7 REPLACE", "+OK", (idle, ":0\r\n"));
        let syntax = "-ERR syntax error";
        for tail in [
            "0 FOO",
            "0 IDLETIME",
            "0 FREQ",
            "0 FREQ 1 IDLETIME 1",
            "0 IDLETIME 1 FREQ 1",
        ] {
            check(tail, syntax, ("GET k", "$1\r\nv\r\n"));
        }
        let integer = "-ERR value is not an integer or out of range";
        for tail in ["x REPLACE", "0 FREQ x", "0 IDLETIME x"] {
            check(tail, integer, ("GET k", "$1\r\nv\r\n"));
        }
        let ttl = "-ERR Invalid TTL value, must be >= 0";
        check("-1 REPLACE", ttl, ("GET k", "$1\r\nv\r\n"));
        check("9223372036854775807 REPLACE", ttl, ("TTL k", ":-1\r\n"));
        let freq = "-ERR Invalid FREQ value, must be >= 0 and <= 255";
        check("0 FREQ 256", freq, ("GET k", "$1\r\nv\r\n"));
        let idle = "-ERR Invalid IDLETIME value, must be >= 0";
        check("0 IDLETIME -1", idle, ("GET k", "$1\r\nv\r\n"));
        check("1 ABSTTL REPLACE", "+OK", ("EXISTS k", ":0\r\n"));
        check("1 ABSTTL", "+OK", ("EXISTS k", ":0\r\n"));
        let late = "1700000005000 absttl";
        check(late, "+OK", ("PTTL k", ":5000\r\n"));
    }

    #[test]
    fn frequencies_count_where_the_policy_wants_them() {
        let mut rig = Rig::new();
        let lfu = Policy {
            lfu: true,
            ..rig.shard.policy()
        };
        rig.shard.set_policy(lfu);
        let words: [&[u8]; 6] = [b"RESTORE", b"k", b"0", REDIS, b"FREQ", b"100"];
        assert_eq!(text(&mut rig, &words), "+OK");
        rig.check("object|freq freq k", ":100");
    }

    #[test]
    fn what_is_wrong_leaves_the_key_as_it_was() {
        let mut rig = Rig::new();
        rig.check("SET k old", "+OK");
        let mut check = |payload: &[u8], reply: &str| {
            let words: [&[u8]; 5] = [b"RESTORE", b"k", b"0", payload, b"REPLACE"];
            assert_eq!(text(&mut rig, &words), reply);
            rig.check("GET k", "'old'");
        };
        let footer = "-ERR DUMP payload version or checksum are wrong";
        check(b"", footer);
        check(&REDIS[..12], footer);
        let mut damaged = REDIS.to_vec();
        damaged[2] = b'w';
        check(&damaged, footer);
        let format = "-ERR Bad data format";
        check(&seal(Vec::new()), format);
        check(&seal(b"\x00\x02v".to_vec()), format);
        check(&seal(b"\x00\x01vv".to_vec()), format);
        check(&seal(vec![0x0f, 1, 2]), format);
        // A set with the same member twice, and one without any.
        check(&seal(b"\x02\x02\x01a\x01a".to_vec()), format);
        check(&seal(b"\x02\x00".to_vec()), format);
    }

    /// Every payload that is accepted is a value that DUMP writes and RESTORE takes again.
    #[test]
    fn hostile_payloads() {
        let mut rig = Rig::new();
        let mut rng = Rng::new(11);
        let mut accepted = 0;
        for round in 0..20_000_u32 {
            let mut body = seed(&mut rng);
            for _ in 0..rng.below(4) {
                let at = rng.below(body.len() as u64 + 1) as usize;
                match rng.below(4) {
                    0 => body.truncate(at),
                    1 => body.insert(at, rng.next_u64() as u8),
                    _ => {
                        if let Some(byte) = body.get_mut(at) {
                            *byte = rng.next_u64() as u8;
                        }
                    }
                }
            }
            let payload = seal(body);
            let words: [&[u8]; 5] = [b"RESTORE", b"k", b"0", &payload, b"REPLACE"];
            let before = round.to_string();
            rig.run(&[b"SET", b"k", before.as_bytes()]);
            if text(&mut rig, &words) == "+OK" {
                accepted += 1;
                let again = dump(&mut rig, b"k");
                let words: [&[u8]; 4] = [b"RESTORE", b"again", b"0", &again];
                assert_eq!(text(&mut rig, &words), "+OK");
                let same = |any: Option<rufous_kernel::shard::Any<'_>>| any.map(|a| a.to_owned());
                let (k, copy) = (rig.shard.key(b"k"), rig.shard.key(b"again"));
                let first = same(rig.shard.look(0, k, rig.now));
                assert_eq!(first, same(rig.shard.look(0, copy, rig.now)));
                rig.check("DEL again", ":1");
            } else {
                let reply = format!("${}\r\n{before}\r\n", before.len());
                rig.check("GET k", &reply);
            }
        }
        assert!(accepted > 1000, "{accepted}");
    }

    /// The body of a payload that may be right, of every form that has few bytes.
    fn seed(rng: &mut Rng) -> Vec<u8> {
        let seeds: [&[u8]; 10] = [
            b"\x00\x05hello",
            b"\x00\xc1\x00\x10",
            b"\x01\x02\x01a\x01b",
            b"\x02\x02\x01a\xc0\x07",
            b"\x04\x01\x01f\x01v",
            b"\x05\x02\x01a\0\0\0\0\0\0\xf0\x3f\x01b\0\0\0\0\0\0\x00\x40",
            b"\x03\x01\x01a\x031.5",
            b"\x0b\x0c\x02\0\0\0\x02\0\0\0\x01\0\x02\0",
            b"\xd0\x01\x08\x08\x05\0\0\0\0\0\0\0",
            b"\x00\xc3\x04\x05\x00a\x20\x00\x00",
        ];
        seeds[rng.below(10) as usize].to_vec()
    }

    const REDIS: &[u8] = b"\x00\x01v\x0a\x00\x91\x08\xce\xb2\x19\x38\x8a\xce";
}
