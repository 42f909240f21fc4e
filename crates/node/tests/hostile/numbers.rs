//! Numbers at and beyond every edge.

use crate::common::*;
use std::time::{Duration, Instant};

const EDGES: [&str; 22] = [
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "4294967295",
    "4294967296",
    "2147483647",
    "2147483648",
    "-2147483649",
    "536870911",
    "536870912",
    "4294967296000",
    "99999999999999999999999999999999999999",
    "-1",
    "0",
    "",
    "1e400",
    "nan",
    "inf",
    "0x10",
];

/// `#` is where the number goes.
const COMMANDS: [&str; 44] = [
    "INCRBY k #",
    "DECRBY k #",
    "INCRBYFLOAT f #",
    "SETRANGE k # x",
    "GETRANGE k # #",
    "GETRANGE k 0 #",
    "GETRANGE k # 0",
    "SUBSTR k # #",
    "SETBIT k # 1",
    "SETBIT k 0 #",
    "GETBIT k #",
    "BITCOUNT k # #",
    "BITCOUNT k # # BIT",
    "BITPOS k 1 # #",
    "BITPOS k 0 # # BIT",
    "BITPOS k #",
    "BITFIELD k SET u8 # 1",
    "BITFIELD k GET u63 #",
    "BITFIELD k INCRBY i64 0 #",
    "BITFIELD k SET i64 ## #",
    "BITFIELD k OVERFLOW SAT INCRBY i8 # #",
    "BITFIELD k GET u# 0",
    "EXPIRE k #",
    "PEXPIRE k #",
    "EXPIREAT k #",
    "PEXPIREAT k #",
    "SET e v EX #",
    "SET e v PX #",
    "SET e v EXAT #",
    "SET e v PXAT #",
    "GETEX e EX #",
    "GETEX e PXAT #",
    "SETEX e # v",
    "PSETEX e # v",
    "SCAN #",
    "SCAN 0 COUNT #",
    "SELECT #",
    "SWAPDB 0 #",
    "MOVE k #",
    "COPY k k2 DB #",
    "LCS k f MINMATCHLEN # IDX",
    "SLOWLOG GET #",
    "CLIENT KILL ID #",
    "OBJECT FREQ #",
];

/// Whatever the number: one well-formed reply, and the server lives.
#[test]
fn every_numeric_argument_at_every_edge() {
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    let before = server.peak();
    let mut client = server.client();
    for command in COMMANDS {
        for edge in EDGES {
            client.ok(&["SET", "k", "7"]);
            client.ok(&["SET", "f", "1.5"]);
            // Another thread drops large values, in its own time. The bound below is for what one
            // command needs, so the last one's value must have gone, and does go.
            let deadline = Instant::now() + Duration::from_secs(60);
            while server.rss() > before + 256 * MIB {
                assert!(Instant::now() < deadline, "a dropped value is kept");
                std::thread::sleep(Duration::from_millis(2));
            }
            let line = command.replace('#', edge);
            let args: Vec<&str> = line.split(' ').collect();
            client.run(&args);
            client.ok(&["SELECT", "0"]);
            client.run(&["DEL", "e", "k2"]);
        }
    }
    witness.finish();
    // One of the edges is the last offset that a string may have.
    server.assert_grew_less(before, 1536 * MIB);
}

#[test]
fn overflow_changes_nothing() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let overflow = "ERR increment or decrement would overflow";
    let not_integer = "ERR value is not an integer or out of range";
    let invalid_expire = |name: &str| format!("ERR invalid expire time in '{name}' command");
    let cases: Vec<(&str, String)> = vec![
        ("INCR k", overflow.into()),
        ("INCRBY k 1", overflow.into()),
        ("INCRBY k 9223372036854775807", overflow.into()),
        ("INCRBY k 9223372036854775808", not_integer.into()),
        ("DECRBY k -1", overflow.into()),
        (
            "DECRBY k -9223372036854775808",
            "ERR decrement would overflow".into(),
        ),
        ("EXPIRE k 9223372036854775807", invalid_expire("expire")),
        ("EXPIRE k -9223372036854775808", invalid_expire("expire")),
        ("PEXPIRE k 9223372036854775807", invalid_expire("pexpire")),
        ("EXPIREAT k 9223372036854775807", invalid_expire("expireat")),
        ("SET k v EX 9223372036854775807", invalid_expire("set")),
        ("SET k v PX 0", invalid_expire("set")),
        ("SETEX k 9223372036854775807 v", invalid_expire("setex")),
        ("GETEX k EX 9223372036854775807", invalid_expire("getex")),
        ("SETRANGE k -1 x", "ERR offset is out of range".into()),
        (
            "SETRANGE k 536870912 x",
            "ERR string exceeds maximum allowed size (proto-max-bulk-len)".into(),
        ),
        (
            "SETRANGE k 9223372036854775807 x",
            "ERR string exceeds maximum allowed size (proto-max-bulk-len)".into(),
        ),
        (
            "SETBIT k 4294967296 1",
            "ERR bit offset is not an integer or out of range".into(),
        ),
        (
            "SETBIT k -1 1",
            "ERR bit offset is not an integer or out of range".into(),
        ),
        (
            "GETBIT k 9223372036854775808",
            "ERR bit offset is not an integer or out of range".into(),
        ),
        (
            "BITFIELD k SET u8 #9223372036854775807 1",
            "ERR bit offset is not an integer or out of range".into(),
        ),
        ("SCAN 18446744073709551616", "ERR invalid cursor".into()),
        ("SCAN x", "ERR invalid cursor".into()),
        ("SCAN 0 COUNT 9223372036854775808", not_integer.into()),
        ("SCAN 0 COUNT 0", "ERR syntax error".into()),
        (
            "SELECT 9223372036854775808",
            "ERR value is not an integer or out of range".into(),
        ),
        ("SELECT 16", "ERR DB index is out of range".into()),
    ];
    client.ok(&["SET", "k", "9223372036854775807"]);
    for (line, expected) in cases {
        assert_eq!(client.words(line), Reply::Error(expected), "{line}");
        assert_eq!(
            client.words("GET k"),
            Reply::Bulk(b"9223372036854775807".to_vec()),
            "{line}"
        );
        assert_eq!(client.words("TTL k"), Reply::Int(-1), "{line}");
    }
}
