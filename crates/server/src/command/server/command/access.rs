//! How a command treats its keys, in Redis's words: whether it reads them (`RO`), changes (`RW`),
//! overwrites (`OW`) or removes them (`RM`), and what it does with what they hold.

use rufous_base::Args;
use rufous_command::{Flags, Spec};

type Access = &'static [&'static str];

const READS: Access = &["RO", "access"];
/// Only about the key: that it is there, of which type, how long.
const ASKS: Access = &["RO"];
const CHANGES: Access = &["RW", "update"];
const READS_AND_CHANGES: Access = &["RW", "access", "update"];
const ADDS: Access = &["RW", "insert"];
const TAKES: Access = &["RW", "access", "delete"];
const REMOVES: Access = &["RW", "delete"];
const DELETES: Access = &["RM", "delete"];
const OVERWRITES: Access = &["OW", "update"];
const MAKES: Access = &["OW", "insert"];

/// The commands that treat their keys in another way than most that read or write do: the way for
/// the first key, and for all others.
const OTHERWISE: [(Access, Access, &[&str]); 16] = [
    (
        ASKS,
        ASKS,
        &[
            "exists",
            "hexists",
            "hlen",
            "hstrlen",
            "llen",
            "scard",
            "sismember",
            "strlen",
            "touch",
            "type",
            "watch",
            "zcard",
        ],
    ),
    (
        READS_AND_CHANGES,
        READS_AND_CHANGES,
        &[
            "bitfield",
            "decr",
            "decrby",
            "getex",
            "getset",
            "hincrby",
            "hincrbyfloat",
            "incr",
            "incrby",
            "incrbyfloat",
            "move",
            "setbit",
            "zincrby",
        ],
    ),
    (
        ADDS,
        ADDS,
        &[
            "append", "hsetnx", "linsert", "lpush", "lpushx", "pfadd", "rpush", "rpushx", "sadd",
        ],
    ),
    (
        TAKES,
        TAKES,
        &[
            "blmpop", "blpop", "brpop", "bzmpop", "bzpopmax", "bzpopmin", "getdel", "lmpop",
            "lpop", "rpop", "spop", "zmpop", "zpopmax", "zpopmin",
        ],
    ),
    (
        TAKES,
        ADDS,
        &["blmove", "brpoplpush", "lmove", "rpoplpush", "smove"],
    ),
    (
        REMOVES,
        REMOVES,
        &[
            "hdel",
            "lrem",
            "ltrim",
            "srem",
            "zrem",
            "zremrangebylex",
            "zremrangebyrank",
            "zremrangebyscore",
        ],
    ),
    (DELETES, DELETES, &["del", "unlink"]),
    (
        OVERWRITES,
        OVERWRITES,
        &["mset", "psetex", "restore", "set", "setex"],
    ),
    (MAKES, MAKES, &["msetnx", "setnx"]),
    (
        OVERWRITES,
        READS,
        &[
            "bitop",
            "geosearchstore",
            "sdiffstore",
            "sunionstore",
            "zdiffstore",
            "zinterstore",
            "zrangestore",
            "zunionstore",
        ],
    ),
    (CHANGES, READS, &["sinterstore"]),
    (
        READS,
        OVERWRITES,
        &["copy", "georadius", "georadiusbymember", "sort"],
    ),
    (TAKES, OVERWRITES, &["rename"]),
    (TAKES, MAKES, &["renamenx"]),
    (
        &["RW", "access"],
        &["RW", "access"],
        &["pfcount", "pfdebug"],
    ),
    (&["RW", "access", "insert"], READS, &["pfmerge"]),
];

/// How the key that is number `nth` of a request's keys is treated, by the command alone.
pub(super) fn of(spec: &Spec, nth: usize) -> Access {
    let row = OTHERWISE.iter().find(|row| row.2.contains(&spec.name));
    match row {
        Some((first, ..)) if nth == 0 => first,
        Some((_, others, _)) => others,
        None if spec.flags.has(Flags::WRITE) => CHANGES,
        None => READS,
    }
}

/// The same where the whole request is known, which stands among arguments from `first` on.
pub(super) fn of_request(spec: &Spec, nth: usize, args: &Args<'_>, first: usize) -> Access {
    let mut options = args.iter_from(first + 3);
    if spec.name == "set" && options.any(|option| option.eq_ignore_ascii_case(b"GET")) {
        return READS_AND_CHANGES;
    }
    of(spec, nth)
}

#[cfg(test)]
mod tests {
    use super::OTHERWISE;
    use crate::front::testing::Rig;

    #[test]
    fn keys_are_treated_in_different_ways() {
        let mut rig = Rig::new(1);
        let way = |key: &str, flags: &[&str]| {
            let flags: String = flags.iter().map(|flag| format!("+{flag}\r\n")).collect();
            let count = flags.matches('+').count();
            format!("*2\r\n${}\r\n{key}\r\n*{count}\r\n{flags}", key.len())
        };
        let mut check = |request: &str, ways: &[String]| {
            let wanted = format!("*{}\r\n{}", ways.len(), ways.concat());
            rig.check(&format!("COMMAND GETKEYSANDFLAGS {request}"), &wanted);
        };
        check("SET a 1", &[way("a", &["OW", "update"])]);
        check("SET a 1 GET", &[way("a", &["RW", "access", "update"])]);
        check(
            "LMOVE a b LEFT LEFT",
            &[
                way("a", &["RW", "access", "delete"]),
                way("b", &["RW", "insert"]),
            ],
        );
        check(
            "SUNIONSTORE d a b",
            &[
                way("d", &["OW", "update"]),
                way("a", &["RO", "access"]),
                way("b", &["RO", "access"]),
            ],
        );
        check("EXISTS a", &[way("a", &["RO"])]);
    }

    #[test]
    fn no_command_is_named_twice() {
        let mut names: Vec<&str> = OTHERWISE.iter().flat_map(|row| row.2).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
