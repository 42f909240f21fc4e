//! Commands whose keys are of several nodes or slots, and that no slot can execute alone: they do what they do on one node,
//! all at once.

use crate::apart::{Client, are_forgotten, bulk, exec, ok};
use crate::node::Node;
use crate::plain::{spread, text};
use crate::several::start;
use rufous_resp::reply::Reply;
use std::sync::atomic::{AtomicBool, Ordering};

/// Strings, lists, sets, sorted sets, hashes: three keys of each, of slots all over the cluster.
const KEYS: usize = 3;

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }

    fn key(&mut self, kind: &str) -> String {
        // Now and then of another type.
        let kind = match self.below(12) {
            0 => ["s", "l", "u", "z", "h", "p"][self.below(6)],
            _ => kind,
        };
        format!("{kind}:{}", self.below(KEYS))
    }

    /// A command, with words in which `s`, `l`, `u`, `z`, `h` and `p` between `<` and `>` are keys of this type, and `#` is
    /// a number.
    fn words(&mut self, of: &str) -> Vec<String> {
        let words = of.split(' ').map(|word| match word {
            "#" => self.below(9).to_string(),
            word => match word.strip_prefix('<').and_then(|w| w.strip_suffix('>')) {
                Some(kind) => self.key(kind),
                None => word.to_owned(),
            },
        });
        words.collect()
    }
}

const COMMANDS: [&str; 48] = [
    "SET <s> v#",
    "SET <s> # PX 3600000",
    "APPEND <s> more",
    "RPUSH <l> # # #",
    "SADD <u> # # # x",
    "ZADD <z> # a # b # c",
    "GEOADD <z> 13.3 38.1 a 15.0 37.5 b",
    "HSET <h> f #",
    "PFADD <p> # # # #",
    "DEL <l>",
    "RENAME <s> <s>",
    "RENAME <l> <l>",
    "RENAMENX <u> <u>",
    "COPY <z> <z>",
    "COPY <h> <h> REPLACE",
    "COPY <s> <s> DB 3 REPLACE",
    "SMOVE <u> <u> #",
    "LMOVE <l> <l> LEFT RIGHT",
    "RPOPLPUSH <l> <l>",
    "LMPOP 2 <l> <l> LEFT COUNT 2",
    "ZMPOP 2 <z> <z> MIN",
    "SINTERSTORE <u> <u> <u>",
    "SUNIONSTORE <u> <u> <u>",
    "SDIFFSTORE <u> <u> <u>",
    "SINTERCARD 2 <u> <u>",
    "ZUNIONSTORE <z> 2 <z> <z> WEIGHTS 2 1",
    "ZINTERSTORE <z> 2 <z> <z>",
    "ZDIFFSTORE <z> 2 <z> <z>",
    "ZRANGESTORE <z> <z> 0 1",
    "ZUNION 2 <z> <u> WITHSCORES",
    "GEOSEARCHSTORE <z> <z> FROMLONLAT 15 37 BYRADIUS 200 km",
    "BITOP OR <s> <s> <s>",
    "BITOP NOT <s> <s>",
    "PFMERGE <p> <p> <p>",
    "PFCOUNT <p> <p>",
    "LCS <s> <s>",
    "SORT <l> STORE <l>",
    "MSET <s> 1 <s> 2",
    "MSETNX <s> 1 <s> 2",
    "MGET <s> <s> <l>",
    "PERSIST <s>",
    "TTL <s>",
    "LRANGE <l> 0 -1",
    "ZRANGE <z> 0 -1 WITHSCORES",
    "HGETALL <h>",
    "STRLEN <s>",
    "SCARD <u>",
    "MOVE <s> 3",
];

fn call(node: &mut Node, words: &[String]) -> Reply {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    node.call(&words)
}

/// What all keys have: their types, and values in an order of their own.
fn contents(node: &mut Node) -> Vec<String> {
    let mut all = Vec::new();
    for db in ["0", "3"] {
        node.call(&["SELECT", db]);
        for kind in ["s", "l", "u", "z", "h", "p"] {
            for n in 0..KEYS {
                let key = format!("{kind}:{n}");
                let of = text(node.call(&["TYPE", &key]));
                let value = match of.as_str() {
                    "string" => node.call(&["GET", &key]),
                    "list" => node.call(&["LRANGE", &key, "0", "-1"]),
                    "set" => node.call(&["SORT", &key, "ALPHA"]),
                    "zset" => node.call(&["ZRANGE", &key, "0", "-1", "WITHSCORES"]),
                    "hash" => node.call(&["HGETALL", &key]),
                    _ => Reply::Null,
                };
                let has_deadline = node.call(&["TTL", &key]) != Reply::Integer(-1);
                all.push(format!("{db} {key} {of} {has_deadline} {value:?}"));
            }
        }
    }
    node.call(&["SELECT", "0"]);
    all
}

/// Sorted, where the reply is a set.
fn shown(mut reply: Reply, words: &[String]) -> Reply {
    let is_set = ["SMEMBERS", "SUNION", "SINTER", "SDIFF"].contains(&&*words[0]);
    if let (Reply::Array(all), true) = (&mut reply, is_set) {
        all.sort_by_key(|one| format!("{one:?}"));
    }
    reply
}

#[test]
fn commands_over_nodes_do_what_they_do_on_one_node() {
    for (mut nodes, seed) in [(spread(&[2, 2, 1]), 7), (start(), 8)] {
        let mut lone = spread(&[1]);
        let mut random = Random(seed);
        for n in 0..1200 {
            let of = COMMANDS[random.below(COMMANDS.len())];
            let words = random.words(of);
            let at = n % nodes.len();
            let reply = shown(call(&mut nodes[at], &words), &words);
            let expected = shown(call(&mut lone[0], &words), &words);
            assert_eq!(reply, expected, "{n}: {words:?}");
        }
        let expected = contents(&mut lone[0]);
        for node in &mut nodes {
            assert_eq!(contents(node), expected);
        }
        are_forgotten(&mut nodes);
    }
}

#[test]
fn transactions_with_such_commands_do_what_they_do_on_one_node() {
    let (mut nodes, mut lone) = (start(), spread(&[1]));
    let mut random = Random(9);
    for n in 0..150 {
        let count = 2 + random.below(6);
        let all: Vec<Vec<String>> = (0..count)
            .map(|_| {
                let of = COMMANDS[random.below(COMMANDS.len())];
                random.words(of)
            })
            .collect();
        let at = n % nodes.len();
        let mut done = Vec::new();
        for node in [&mut nodes[at], &mut lone[0]] {
            node.call(&["MULTI"]);
            for words in &all {
                assert_eq!(text(call(node, words)), "QUEUED", "{words:?}");
            }
            done.push(node.call(&["EXEC"]));
        }
        assert_eq!(done[0], done[1], "{n}: {all:?}");
    }
    let expected = contents(&mut lone[0]);
    assert_eq!(contents(&mut nodes[0]), expected);
    are_forgotten(&mut nodes);
}

/// Elements move between lists of all nodes: each is in one of them at any time.
#[test]
fn what_moves_is_always_somewhere() {
    let mut nodes = start();
    let lists: Vec<String> = (0..6).map(|n| format!("list{n}")).collect();
    for n in 0..60 {
        nodes[0].call(&["RPUSH", &lists[n % 6], &n.to_string()]);
    }
    let is_over = AtomicBool::new(false);
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    std::thread::scope(|scope| {
        for (at, node) in nodes.iter().enumerate() {
            let (lists, is_over) = (&lists, &is_over);
            scope.spawn(move || {
                let mut client = Client::of(node);
                let mut random = Random(100 + at as u64);
                for _ in 0..150 {
                    let (a, b) = (&lists[random.below(6)], &lists[random.below(6)]);
                    let moved = client.call(&[words(&["LMOVE", a, b, "LEFT", "RIGHT"])]);
                    assert!(matches!(moved, Reply::Bulk(_) | Reply::Null), "{moved:?}");
                }
                is_over.store(true, Ordering::Relaxed);
            });
        }
        let mut client = Client::of(&nodes[0]);
        while !is_over.load(Ordering::Relaxed) {
            let mut requests = vec![words(&["MULTI"])];
            requests.extend(lists.iter().map(|list| words(&["LRANGE", list, "0", "-1"])));
            requests.push(words(&["EXEC"]));
            let Reply::Array(all) = client.call(&requests) else {
                panic!("no audit");
            };
            let each = all.into_iter().flat_map(|list| match list {
                Reply::Array(list) => list,
                other => panic!("{other:?}"),
            });
            let mut each: Vec<String> = each.map(text).collect();
            each.sort_by_key(|text| text.parse::<u32>().expect("a number"));
            let expected: Vec<String> = (0..60).map(|n| n.to_string()).collect();
            assert_eq!(each, expected);
        }
    });
    are_forgotten(&mut nodes);
}

#[test]
fn values_that_are_too_large_to_travel_stay_where_they_are() {
    let mut nodes = start();
    let node = &mut nodes[0];
    let large = "v".repeat(5 << 20);
    for key in ["a", "b", "c", "d"] {
        assert_eq!(node.call(&["SET", key, &large]), ok());
    }
    let mut refused = 0;
    for (a, b) in [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")] {
        let done = text(node.call(&["RENAME", a, b]));
        if done == "OK" {
            // The slot of the first key is the last one: its value did not travel, but changes do.
            panic!("{a} went to {b}");
        }
        refused += 1;
        assert!(done.starts_with("ERR the values of commands"), "{done}");
    }
    assert_eq!(refused, 4);
    assert_eq!(
        node.call(&["EXISTS", "a", "b", "c", "d"]),
        Reply::Integer(4)
    );
    let done = exec(
        node,
        &[&["SET", "e", "1"], &["RENAME", "e", "f"], &["GET", "f"]],
    );
    assert_eq!(done, Reply::Array(vec![ok(), ok(), bulk("1")]));
    are_forgotten(&mut nodes);
}
