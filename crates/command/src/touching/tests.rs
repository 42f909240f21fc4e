//! Pairs of requests that are said to be independent, on the real store in both orders.

use super::{Request, footprint};
use crate::testing::Rig;
use crate::{Command, data_commands};
use rufous_base::Args;
use rufous_datatype::key::{Footprint, Holders, Relation};

/// Requests that make the states: no key, small ones of each type, with a deadline and without.
const STATES: [&[&str]; 14] = [
    &[],
    &["SET k 5"],
    &["SET k 5 EX 100"],
    &["SET k 9223372036854775806"],
    &["SET k v EX 200"],
    &["SADD k a"],
    &["SADD k a", "EXPIRE k 100"],
    &["SADD k a b c", "EXPIRE k 100"],
    &["HSET k f 1"],
    &["HSET k f 1", "EXPIRE k 100"],
    &["RPUSH k a"],
    &["RPUSH k a b", "EXPIRE k 100"],
    &["ZADD k 1 a"],
    &["ZADD k 1 a 2 b", "EXPIRE k 200"],
];

const REQUESTS: [&str; 62] = [
    "GET k",
    "STRLEN k",
    "INCR k",
    "DECR k",
    "INCRBY k 3",
    "INCRBY k -2",
    "DECRBY k 2",
    "INCRBY k x",
    "APPEND k z",
    "GETDEL k",
    "SET k 1",
    "SET k 2 EX 50",
    "SET k 3 NX",
    "SET k 3 XX KEEPTTL",
    "SET k 4 GET",
    "SET k 4 EXAT 1",
    "SETNX k 6",
    "GETSET k 7",
    "SETEX k 60 v",
    "GETRANGE k 0 1",
    "SETRANGE k 1 q",
    "GETEX k EX 70",
    "DEL k",
    "UNLINK k",
    "EXISTS k",
    "TYPE k",
    "TTL k",
    "PTTL k",
    "PERSIST k",
    "EXPIRE k 100",
    "EXPIRE k 300 GT",
    "EXPIRE k 50 NX",
    "PEXPIRE k 0",
    "EXPIRE k -1 XX",
    "EXPIREAT k 1",
    "SADD k a",
    "SADD k b d",
    "SREM k a",
    "SREM k b z",
    "SISMEMBER k a",
    "SMISMEMBER k a b",
    "SCARD k",
    "SMEMBERS k",
    "SPOP k",
    "HSET k f 1",
    "HSET k g 2 h 3",
    "HINCRBY k f 2",
    "HDEL k f",
    "HDEL k g",
    "HGET k f",
    "HLEN k",
    "HGETALL k",
    "LPUSH k a",
    "RPUSH k b",
    "LPOP k",
    "RPOP k 2",
    "LLEN k",
    "LRANGE k 0 -1",
    "ZREM k a",
    "ZADD k 2 b",
    "ZSCORE k a",
    "ZCARD k",
];

struct Tried {
    text: &'static str,
    quiet: Footprint,
    wanted: Footprint,
}

impl Tried {
    fn footprint(&self, wanted: bool) -> &Footprint {
        if wanted { &self.wanted } else { &self.quiet }
    }
}

fn tried(text: &'static str) -> Tried {
    let words: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
    let name = text.split(' ').next().unwrap_or_default().to_lowercase();
    let mut all = data_commands();
    let command: &Command = all.find(|of| of.spec.name == name).expect(text);
    let (mut buf, mut spans, mut big) = (Vec::new(), Vec::new(), Vec::new());
    for word in words {
        spans.push((buf.len() as u32, word.len() as u32));
        buf.extend_from_slice(word);
    }
    let args = Args::new(&buf, &spans, &mut big);
    let now_ms = Rig::new().now.unix_us / 1000;
    let of = |wanted| {
        let request = Request {
            args: &args,
            now_ms,
            wanted,
        };
        footprint(command, request)
    };
    Tried {
        text,
        quiet: of(false),
        wanted: of(true),
    }
}

/// The replies of requests, and what they leave.
fn run(state: &[&str], requests: [&str; 2]) -> ([Vec<u8>; 2], Vec<Vec<u8>>) {
    let mut rig = Rig::new();
    let mut one = |request: &str| {
        let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
        let reply = rig.run(&words);
        // Members and fields have no order.
        let mut lines: Vec<&[u8]> = reply.split(|byte| *byte == b'\n').collect();
        if request.starts_with("SMEMBERS") || request.starts_with("HGETALL") {
            lines.sort_unstable();
        }
        lines.join(&b'\n')
    };
    state.iter().for_each(|request| {
        one(request);
    });
    let replies = requests.map(&mut one);
    let left = [
        "TYPE k",
        "PTTL k",
        "GET k",
        "SMEMBERS k",
        "HGETALL k",
        "LRANGE k 0 -1",
        "ZRANGE k 0 -1 WITHSCORES",
    ];
    (replies, left.iter().map(|request| one(request)).collect())
}

/// Whether two requests are independent, each with its reply wanted or not.
type Rule = fn([&Tried; 2], [bool; 2]) -> bool;

fn stated([a, b]: [&Tried; 2], [wants_a, wants_b]: [bool; 2]) -> bool {
    let mut holders = Holders::default();
    holders.hold(a.footprint(wants_a));
    holders.relation(b.footprint(wants_b), None) == Relation::Independent
}

/// How many pairs are independent; fails with one that is not.
fn check(rule: Rule) -> Result<usize, String> {
    const WANTED: [[bool; 2]; 4] = [[true, true], [true, false], [false, true], [false, false]];
    let all: Vec<Tried> = REQUESTS.iter().map(|text| tried(text)).collect();
    let mut independent = 0;
    for (at, a) in all.iter().enumerate() {
        for b in &all[..=at] {
            let ways = WANTED.into_iter().filter(|wanted| rule([a, b], *wanted));
            let ways: Vec<[bool; 2]> = ways.collect();
            independent += ways.len();
            for state in STATES.iter().filter(|_| !ways.is_empty()) {
                let ([of_a, of_b], one) = run(state, [a.text, b.text]);
                let ([late_b, late_a], other) = run(state, [b.text, a.text]);
                let alike = |[wants_a, wants_b]: &[bool; 2]| {
                    (!wants_a || of_a == late_a) && (!wants_b || of_b == late_b)
                };
                if one != other || !ways.iter().all(alike) {
                    return Err(format!("{}, {} after {state:?}", a.text, b.text));
                }
            }
        }
    }
    Ok(independent)
}

#[test]
fn independent_requests_give_the_same_in_both_orders() {
    let independent = check(stated).unwrap_or_else(|pair| panic!("{pair}"));
    assert!(independent > 500, "{independent}");
}

#[test]
fn an_add_and_a_removal_that_are_said_to_be_independent_are_found() {
    let found = check(|pair, wanted| {
        let texts = pair.map(|of| of.text);
        stated(pair, wanted) || texts == ["SREM k a", "SADD k b d"]
    });
    assert_eq!(
        found,
        Err("SREM k a, SADD k b d after [\"SADD k a\", \"EXPIRE k 100\"]".into())
    );
}
