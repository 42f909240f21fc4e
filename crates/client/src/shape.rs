//! Properties of a command that decide how it is sent: its key, whether it only reads, and which kind of
//! connection it needs.

use std::time::Duration;

/// The connection that a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionKind {
    /// The one that all tasks share.
    Shared,
    /// One of its own while it blocks, for at most this time; `None`: without a limit.
    Alone(Option<Duration>),
    /// One that the application holds: the command changes the meaning of later ones.
    Held,
    /// None: it does not have exactly one reply per request, and is refused.
    Never,
}

/// The properties of one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape<'a> {
    /// Decides the slot; `None` if any node can serve it.
    pub(crate) key: Option<&'a [u8]>,
    /// Only reads: replicas may answer.
    pub(crate) reads: bool,
    /// May be repeated although it may have been executed.
    pub(crate) repeatable: bool,
    pub(crate) kind: ConnectionKind,
}

/// What is known of a command by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Changes nothing on its key.
    Reads,
    /// Has no key and only asks.
    Asks,
    /// Has no key.
    Keyless,
    /// Has no key and changes the meaning of later commands.
    KeylessHeld,
    /// Has a key and changes the meaning of later commands.
    Held,
    /// Does not have one reply per request, or ends or changes the connection.
    Never,
    /// Taken for a write on its first word: safe.
    Other,
}

fn class(name: &str) -> Class {
    match name {
        "BITCOUNT" | "BITFIELD_RO" | "BITPOS" | "CAUSAL.GET" | "DUMP" | "EVALSHA_RO"
        | "EVAL_RO" | "EXISTS" | "EXPIRETIME" | "FCALL_RO" | "GEODIST" | "GEOHASH" | "GEOPOS"
        | "GEORADIUS_RO" | "GEOSEARCH" | "GET" | "GETBIT" | "GETRANGE" | "HEXISTS" | "HGET"
        | "HGETALL" | "HKEYS" | "HLEN" | "HMGET" | "HRANDFIELD" | "HSCAN" | "HSTRLEN" | "HVALS"
        | "LCS" | "LINDEX" | "LLEN" | "LPOS" | "LRANGE" | "MGET" | "PEXPIRETIME" | "PTTL"
        | "SCARD" | "SDIFF" | "SINTER" | "SINTERCARD" | "SISMEMBER" | "SMEMBERS" | "SMISMEMBER"
        | "SORT_RO" | "SRANDMEMBER" | "SSCAN" | "STRLEN" | "SUBSTR" | "SUNION" | "TTL" | "TYPE"
        | "XLEN" | "XPENDING" | "XRANGE" | "XREVRANGE" | "ZCARD" | "ZCOUNT" | "ZDIFF"
        | "ZINTER" | "ZINTERCARD" | "ZLEXCOUNT" | "ZMSCORE" | "ZRANDMEMBER" | "ZRANGE"
        | "ZRANGEBYLEX" | "ZRANGEBYSCORE" | "ZRANK" | "ZREVRANGE" | "ZREVRANGEBYLEX"
        | "ZREVRANGEBYSCORE" | "ZREVRANK" | "ZSCAN" | "ZSCORE" | "ZUNION" => Class::Reads,
        "GEORADIUSBYMEMBER_RO" => Class::Reads,
        "COMMAND" | "DBSIZE" | "ECHO" | "INFO" | "KEYS" | "LASTSAVE" | "PING" | "RANDOMKEY"
        | "ROLE" | "SCAN" | "TIME" => Class::Asks,
        "ACL" | "BGREWRITEAOF" | "BGSAVE" | "CLIENT" | "CLUSTER" | "CONFIG" | "FAILOVER"
        | "FLUSHALL" | "FLUSHDB" | "FUNCTION" | "KEYSPACE" | "LATENCY" | "LOLWUT" | "MODULE"
        | "PUBLISH" | "PUBSUB" | "REPLICAOF" | "SAVE" | "SCRIPT" | "SHUTDOWN" | "SLAVEOF"
        | "SLOWLOG" | "SWAPDB" | "WAIT" | "WAITAOF" => Class::Keyless,
        "ASKING" | "BEGIN" | "COMMIT" | "DISCARD" | "EXEC" | "MULTI" | "READONLY" | "READWRITE"
        | "ROLLBACK" | "SELECT" | "UNWATCH" => Class::KeylessHeld,
        "WATCH" => Class::Held,
        "AUTH" | "HELLO" | "MONITOR" | "PSUBSCRIBE" | "PSYNC" | "PUNSUBSCRIBE" | "QUIT"
        | "REPLCONF" | "RESET" | "SSUBSCRIBE" | "SUBSCRIBE" | "SUNSUBSCRIBE" | "SYNC"
        | "UNSUBSCRIBE" => Class::Never,
        _ => Class::Other,
    }
}

/// The name in upper case; of what is longer than any name, none.
fn name_of<'b>(args: &[Vec<u8>], buf: &'b mut [u8; 24]) -> &'b str {
    let Some(name) = args.first().filter(|name| name.len() <= buf.len()) else {
        return "";
    };
    let upper = &mut buf[..name.len()];
    upper.copy_from_slice(name);
    upper.make_ascii_uppercase();
    std::str::from_utf8(upper).unwrap_or_default()
}

/// What is known of the command of these words.
pub(crate) fn of(args: &[Vec<u8>]) -> Shape<'_> {
    let mut buf = [0; 24];
    let name = name_of(args, &mut buf);
    // `QUIET` stands before a command; a second one is an error of the server's.
    let mut inner_buf = [0; 24];
    let (name, args) = match (name, args) {
        ("QUIET", [_, rest @ ..]) => (name_of(rest, &mut inner_buf), rest),
        _ => (name, args),
    };
    let class = class(name);
    let key = key_index(class, name, args).and_then(|at| args.get(at));
    let reads = class == Class::Reads || (name == "XREAD") || (name == "OBJECT");
    Shape {
        key: key.map(Vec::as_slice),
        reads,
        repeatable: reads || class == Class::Asks,
        kind: connection_kind(class, name, args),
    }
}

fn key_index(class: Class, name: &str, args: &[Vec<u8>]) -> Option<usize> {
    let counted = |count: usize| (number(args.get(count)?)? > 0.0).then_some(count + 1);
    match name {
        _ if matches!(class, Class::Asks | Class::Keyless | Class::KeylessHeld) => None,
        "EVAL" | "EVALSHA" | "EVAL_RO" | "EVALSHA_RO" | "FCALL" | "FCALL_RO" | "BLMPOP"
        | "BZMPOP" => counted(2),
        "SINTERCARD" | "LMPOP" | "ZMPOP" | "ZINTERCARD" | "ZUNION" | "ZINTER" | "ZDIFF" => {
            counted(1)
        }
        "OBJECT" | "XGROUP" | "XINFO" | "MEMORY" | "DEBUG" | "BITOP" => Some(2),
        "XREAD" | "XREADGROUP" => after(args, b"STREAMS"),
        _ => Some(1),
    }
}

/// Where the word behind an option stands.
fn after(args: &[Vec<u8>], option: &[u8]) -> Option<usize> {
    let at = args
        .iter()
        .position(|arg| arg.eq_ignore_ascii_case(option))?;
    Some(at + 1)
}

fn number(arg: &[u8]) -> Option<f64> {
    std::str::from_utf8(arg).ok()?.parse().ok()
}

fn connection_kind(class: Class, name: &str, args: &[Vec<u8>]) -> ConnectionKind {
    let wait = |arg: Option<&Vec<u8>>, unit: f64| {
        let seconds = arg.and_then(|arg| number(arg)).unwrap_or(0.0) * unit;
        // No time, a negative one and one beyond all measure are for the server to judge.
        let limit = (seconds > 0.0).then(|| Duration::try_from_secs_f64(seconds).ok());
        ConnectionKind::Alone(limit.flatten())
    };
    match name {
        "BLPOP" | "BRPOP" | "BLMOVE" | "BRPOPLPUSH" | "BZPOPMIN" | "BZPOPMAX" => {
            wait(args.last(), 1.0)
        }
        "BLMPOP" | "BZMPOP" => wait(args.get(1), 1.0),
        "WAIT" | "WAITAOF" => wait(args.last(), 0.001),
        "XREAD" | "XREADGROUP" => match after(args, b"BLOCK") {
            Some(at) => wait(args.get(at), 0.001),
            None => ConnectionKind::Shared,
        },
        "CLIENT"
            if args
                .get(1)
                .is_some_and(|arg| arg.eq_ignore_ascii_case(b"REPLY")) =>
        {
            ConnectionKind::Never
        }
        _ => match class {
            Class::Never => ConnectionKind::Never,
            Class::Held | Class::KeylessHeld => ConnectionKind::Held,
            _ => ConnectionKind::Shared,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(line: &str) -> Vec<Vec<u8>> {
        line.split(' ')
            .map(|word| word.as_bytes().to_vec())
            .collect()
    }

    #[test]
    fn keys_are_found() {
        let check = |line: &str, key: Option<&str>| {
            let args = words(line);
            assert_eq!(of(&args).key, key.map(str::as_bytes), "{line}");
        };
        check("get k", Some("k"));
        check("SET k v", Some("k"));
        check("PING", None);
        check("EVAL s 0 a", None);
        check("EVAL s 1 k a", Some("k"));
        check("XREAD COUNT 2 streams k 0", Some("k"));
        check("BITOP AND k l", Some("k"));
        check("SINTERCARD 2 k l", Some("k"));
        check("QUIET INCRBY k 2", Some("k"));
        check("BLMPOP 0 1 k LEFT", Some("k"));
        check("NEW.COMMAND k", Some("k"));
        check("GET", None);
    }

    #[test]
    fn what_binds_a_connection_is_known() {
        let check =
            |line: &str, expected: ConnectionKind| assert_eq!(of(&words(line)).kind, expected);
        let seconds = |s| ConnectionKind::Alone(Some(Duration::from_secs(s)));
        check("BLPOP k 2", seconds(2));
        check("BLPOP k 0", ConnectionKind::Alone(None));
        check("BLPOP k 1e300", ConnectionKind::Alone(None));
        check("BLMPOP 3 1 k LEFT", seconds(3));
        check("XREAD BLOCK 4000 STREAMS k $", seconds(4));
        check("XREAD STREAMS k 0", ConnectionKind::Shared);
        check("multi", ConnectionKind::Held);
        check("Subscribe a", ConnectionKind::Never);
        check("CLIENT reply off", ConnectionKind::Never);
        check("CLIENT ID", ConnectionKind::Shared);
        check("GET k", ConnectionKind::Shared);
    }

    #[test]
    fn only_reads_are_repeated() {
        for line in ["GET k", "PING", "HGETALL k"] {
            assert!(of(&words(line)).repeatable, "{line}");
        }
        for line in [
            "SET k v",
            "INCR k",
            "FLUSHALL",
            "EVAL s 0",
            "OBSCURE k",
            "QUIET INCR k",
        ] {
            assert!(!of(&words(line)).repeatable, "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_words_make_it_panic(args in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 0..6), name in "(XREAD|BLPOP|QUIET|EVAL|BLMPOP|WAIT)?") {
            let mut all = vec![name.into_bytes()];
            all.extend(args);
            of(&all);
            of(&all[1..]);
        }
    }
}
