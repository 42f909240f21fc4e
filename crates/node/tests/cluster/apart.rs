//! Transactions whose keys are at several nodes, or in several slots with copies.

use crate::node::{Node, number};
use crate::plain::{connect, spread, text};
use crate::several::start;
use rufous_resp::encode;
use rufous_resp::reply::{Reply, ReplyParser};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Executes commands between `MULTI` and `EXEC`.
pub(crate) fn exec(node: &mut Node, commands: &[&[&str]]) -> Reply {
    assert_eq!(text(node.call(&["MULTI"])), "OK");
    for words in commands {
        assert_eq!(text(node.call(words)), "QUEUED", "{words:?}");
    }
    node.call(&["EXEC"])
}

pub(crate) fn bulk(text: &str) -> Reply {
    Reply::Bulk(text.as_bytes().to_vec())
}

pub(crate) fn ok() -> Reply {
    Reply::Simple(b"OK".to_vec())
}

/// Nothing is kept of a transaction once all of its slots and its client have heard of it.
pub(crate) fn are_forgotten(nodes: &mut [Node]) {
    for node in nodes {
        node.until("transactions are forgotten", |info| {
            let open = number(info, "cluster_transactions_open");
            open + number(info, "cluster_transactions_waiting") == 0
        });
    }
}

#[test]
fn any_keys_at_any_node_are_one_transaction() {
    for mut nodes in [spread(&[2, 2, 1]), start()] {
        for n in 0..30 {
            let (a, b, c) = (format!("a{n}"), format!("b{n}"), format!("c{n}"));
            let at = n % nodes.len();
            let done = exec(
                &mut nodes[at],
                &[
                    &["SET", &a, "1"],
                    &["INCRBY", &b, "5"],
                    &["RPUSH", &c, "x", "y"],
                    &["GET", &a],
                    &["INCR", &c],
                    &["DEL", &a, &b, "none"],
                    &["MGET", &c, &b, &a],
                    &["MSET", &a, "2", &b, "7"],
                ],
            );
            let Reply::Array(all) = done else {
                panic!("{done:?}");
            };
            let wrong = text(all[4].clone());
            assert!(wrong.starts_with("WRONGTYPE"), "{wrong}");
            let (two, five) = (Reply::Integer(2), Reply::Integer(5));
            assert_eq!(all[..4], [ok(), five, two.clone(), bulk("1")]);
            assert_eq!(all[5], two);
            let none = || Reply::Null;
            assert_eq!(all[6], Reply::Array(vec![none(), none(), none()]));
            assert_eq!(all[7], ok());
            for node in &mut nodes {
                assert_eq!(text(node.call(&["GET", &a])), "2");
                assert_eq!(text(node.call(&["GET", &b])), "7");
                assert_eq!(node.call(&["LLEN", &c]), Reply::Integer(2));
            }
        }
        are_forgotten(&mut nodes);
    }
}

#[test]
fn pairs_are_set_all_at_once_or_not_at_all() {
    for mut nodes in [spread(&[2, 1, 2]), start()] {
        for n in 0..20 {
            let (a, b, c) = (format!("a{n}"), format!("b{n}"), format!("c{n}"));
            let at = n % nodes.len();
            assert_eq!(text(nodes[at].call(&["MSET", &a, "1", &b, "2"])), "OK");
            let set = nodes[at].call(&["MSETNX", &c, "3", &a, "3"]);
            assert_eq!(set, Reply::Integer(0));
            for node in &mut nodes {
                let values = node.call(&["MGET", &a, &b, &c]);
                let expected = vec![bulk("1"), bulk("2"), Reply::Null];
                assert_eq!(values, Reply::Array(expected));
            }
            assert_eq!(nodes[at].call(&["DEL", &a]), Reply::Integer(1));
            let set = nodes[at].call(&["MSETNX", &c, "3", &a, "3"]);
            assert_eq!(set, Reply::Integer(1));
            assert_eq!(text(nodes[at].call(&["GET", &a])), "3");
            let odd = text(nodes[at].call(&["MSET", &a, "1", &b]));
            assert!(odd.contains("wrong number of arguments"), "{odd}");
        }
        are_forgotten(&mut nodes);
    }
}

#[test]
fn a_watched_key_that_changed_keeps_all_slots_from_executing() {
    let mut nodes = spread(&[2, 2]);
    let mut tried = [0, 0];
    for n in 0..40 {
        let (watched, other) = (format!("w{n}"), format!("o{n}"));
        assert_eq!(text(nodes[0].call(&["WATCH", &watched])), "OK");
        let changes = n % 2;
        tried[changes] += 1;
        if changes == 1 {
            assert_eq!(text(nodes[1].call(&["SET", &watched, "x"])), "OK");
        }
        let done = exec(&mut nodes[0], &[&["SET", &other, "1"], &["GET", &watched]]);
        let written = nodes[1].call(&["GET", &other]);
        match changes {
            1 => assert_eq!((done, written), (Reply::NullArray, Reply::Null)),
            _ => assert_eq!(
                (done, written),
                (Reply::Array(vec![ok(), Reply::Null]), bulk("1"))
            ),
        }
    }
    assert_eq!(tried, [20, 20]);
    // Several at once, what ends a watch, and a transaction of no commands.
    for n in 0..20 {
        let (a, b, c) = (format!("a{n}"), format!("b{n}"), format!("c{n}"));
        assert_eq!(text(nodes[1].call(&["WATCH", &a, &b, &c])), "OK");
        assert_eq!(text(nodes[0].call(&["SET", &c, "x"])), "OK");
        match n % 4 {
            0 => assert_eq!(exec(&mut nodes[1], &[&["SET", &a, "1"]]), Reply::NullArray),
            1 => assert_eq!(exec(&mut nodes[1], &[]), Reply::NullArray),
            2 => {
                assert_eq!(text(nodes[1].call(&["UNWATCH"])), "OK");
                let done = exec(&mut nodes[1], &[&["SET", &a, "1"]]);
                assert_eq!(done, Reply::Array(vec![ok()]));
            }
            _ => {
                assert_eq!(text(nodes[1].call(&["MULTI"])), "OK");
                assert_eq!(text(nodes[1].call(&["DISCARD"])), "OK");
                let done = exec(&mut nodes[1], &[&["SET", &a, "1"]]);
                assert_eq!(done, Reply::Array(vec![ok()]));
            }
        }
        // The client's own change counts, too.
        assert_eq!(text(nodes[1].call(&["WATCH", &b])), "OK");
        assert_eq!(text(nodes[1].call(&["SET", &b, "y"])), "OK");
        assert_eq!(exec(&mut nodes[1], &[&["GET", &b]]), Reply::NullArray);
        assert_eq!(text(nodes[1].call(&["GET", &b])), "y");
    }
    are_forgotten(&mut nodes);
}

/// The end of earlier watches may arrive after later ones have begun.
#[test]
fn the_end_of_earlier_watches_ends_no_later_ones() {
    let mut nodes = spread(&[2, 1, 1]);
    for n in 0..150 {
        let key = |name: &str| format!("{name}{n}");
        let earlier: Vec<String> = ["p", "q", "r", "s", "t"].map(key).into();
        let mut words = vec!["WATCH"];
        words.extend(earlier.iter().map(String::as_str));
        assert_eq!(text(nodes[0].call(&words)), "OK");
        let done = exec(&mut nodes[0], &[&["GET", &earlier[0]]]);
        assert_eq!(done, Reply::Array(vec![Reply::Null]), "{n}");
        let (x, y, z) = (key("x"), key("y"), key("z"));
        assert_eq!(text(nodes[0].call(&["WATCH", &x, &y, &z])), "OK");
        let changes = n % 2 == 0;
        if changes {
            assert_eq!(text(nodes[1].call(&["SET", &x, "1"])), "OK");
        }
        let done = exec(&mut nodes[0], &[&["SET", &key("o"), "1"]]);
        let expected = if changes {
            Reply::NullArray
        } else {
            Reply::Array(vec![ok()])
        };
        assert_eq!(done, expected, "{n}");
    }
    are_forgotten(&mut nodes);
}

#[test]
fn a_database_is_selected_by_what_is_executed_alone() {
    let mut nodes = spread(&[1, 2]);
    let node = &mut nodes[0];
    for n in 0..20 {
        let (a, b) = (format!("a{n}"), format!("b{n}"));
        let wrong = &["SELECT", "99"][..];
        let done = exec(
            node,
            &[
                &["SET", &a, "0"],
                wrong,
                &["SELECT", "3"],
                &["SET", &b, "3"],
            ],
        );
        let Reply::Array(all) = done else {
            panic!("{done:?}");
        };
        assert!(text(all[1].clone()).starts_with("ERR DB index"), "{all:?}");
        assert_eq!([&all[0], &all[2], &all[3]], [&ok(), &ok(), &ok()]);
        assert_eq!(text(node.call(&["GET", &b])), "3", "database 3");
        assert_eq!(node.call(&["EXISTS", &a]), Reply::Integer(0));
        // Not executed: neither is SELECT.
        assert_eq!(text(node.call(&["WATCH", &a, &b])), "OK");
        assert_eq!(text(node.call(&["SET", &b, "4"])), "OK");
        let done = exec(node, &[&["SELECT", "5"], &["GET", &a], &["GET", &b]]);
        assert_eq!(done, Reply::NullArray);
        assert_eq!(text(node.call(&["GET", &b])), "4");
        assert_eq!(text(node.call(&["SELECT", "0"])), "OK");
    }
}

#[test]
fn commands_are_found_by_their_names_and_malformed_ones_change_nothing() {
    let mut nodes = spread(&[2, 1]);
    let node = &mut nodes[0];
    for n in 0..20 {
        let (a, b, c) = (format!("a{n}"), format!("b{n}"), format!("c{n}"));
        let done = exec(
            node,
            &[
                &["SET", &a, "1"],
                &["SET", &b, "2"],
                &["OBJECT", "ENCODING", &a],
                &["MSET", &b, "3", &c],
                &["QUIET", "INCR", &a],
            ],
        );
        let Reply::Array(all) = done else {
            panic!("{done:?}");
        };
        assert_eq!(all[2], bulk("int"));
        let wrong = text(all[3].clone());
        assert!(wrong.contains("wrong number of arguments"), "{wrong}");
        assert_eq!(all[4], ok());
        let values = node.call(&["MGET", &a, &b, &c]);
        assert_eq!(
            values,
            Reply::Array(vec![bulk("2"), bulk("2"), Reply::Null])
        );
    }
}

/// What is sent together is executed in order, wherever its keys are.
#[test]
fn a_pipeline_keeps_its_order() {
    let nodes = spread(&[1, 2, 1]);
    let mut client = Client::of(&nodes[1]);
    for round in 0..40 {
        let value = round.to_string();
        let mut requests = Vec::new();
        for n in 0..4 {
            requests.push(words(&["SET", &format!("k{n}"), "early"]));
        }
        requests.push(words(&["MULTI"]));
        for n in 0..4 {
            requests.push(words(&["SET", &format!("k{n}"), &value]));
        }
        requests.push(words(&["EXEC"]));
        requests.push(words(&["MGET", "k0", "k1", "k2", "k3"]));
        requests.push(words(&["MSET", "k0", "late", "k1", "late"]));
        let seen = client.call(&requests[..requests.len() - 1]);
        assert_eq!(seen, Reply::Array(vec![bulk(&value); 4]), "{round}");
        assert_eq!(client.call(&requests[requests.len() - 1..]), ok());
    }
}

#[test]
fn what_no_slot_can_execute_is_refused_and_nothing_is_done() {
    let mut nodes = start();
    let node = &mut nodes[0];
    let refused: [&[&str]; 3] = [
        &["DBSIZE"],
        &["SORT", "a", "BY", "w_*", "STORE", "b"],
        &["SWAPDB", "0", "1"],
    ];
    for words in refused {
        node.call(&["MULTI"]);
        node.call(&["SET", "x", "1"]);
        node.call(&["SET", "y", "1"]);
        node.call(words);
        let done = text(node.call(&["EXEC"]));
        let is_named = done.starts_with("CROSS") || done.starts_with("EXECABORT");
        assert!(is_named, "{words:?}: {done}");
        assert_eq!(node.call(&["EXISTS", "x", "y"]), Reply::Integer(0));
    }
    let large = "v".repeat(9 << 20);
    let why = text(node.call(&["MSET", "a", &large, "b", "1"]));
    assert!(
        why.starts_with("ERR a transaction over several slots"),
        "{why}"
    );
    are_forgotten(&mut nodes);
}

/// Each slot keeps what is told until the transaction is over: more than a few MiB would stop the nodes.
#[test]
fn long_replies_are_left_out() {
    let mut nodes = start();
    let keys: Vec<String> = (0..8).map(|n| format!("large:{n}")).collect();
    let value = "v".repeat(1_000_000);
    for key in &keys {
        assert_eq!(nodes[0].call(&["SET", key, &value]), ok());
    }
    for node in &mut nodes {
        let mut commands: Vec<Vec<&str>> = keys.iter().map(|key| vec!["GET", key]).collect();
        commands.extend(keys.iter().map(|key| vec!["EXPIRE", key, "1000"]));
        let commands: Vec<&[&str]> = commands.iter().map(|words| &words[..]).collect();
        let Reply::Array(all) = exec(node, &commands) else {
            panic!("no replies");
        };
        let (mut whole, mut left_out) = (0, 0);
        for reply in &all[..keys.len()] {
            match reply {
                Reply::Bulk(read) => whole += usize::from(read.len() == value.len()),
                Reply::Error(why) => {
                    let why = String::from_utf8_lossy(why);
                    assert!(why.starts_with("ERR the replies of a transaction"), "{why}");
                    left_out += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((whole, left_out), (4, 4));
        assert_eq!(all[keys.len()..], vec![Reply::Integer(1); keys.len()]);
    }
    are_forgotten(&mut nodes);
}

/// A client with a connection of its own.
pub(crate) struct Client {
    stream: TcpStream,
    parser: ReplyParser,
    received: Vec<u8>,
}

impl Client {
    pub(crate) fn of(node: &Node) -> Self {
        Self::at(node.address())
    }

    pub(crate) fn at(address: SocketAddr) -> Self {
        Self {
            stream: connect(address),
            parser: ReplyParser::default(),
            received: Vec::new(),
        }
    }

    fn send(&mut self, requests: &[Vec<String>]) {
        let mut bytes = Vec::new();
        for words in requests {
            encode::request(&mut bytes, words);
        }
        self.stream.write_all(&bytes).expect("sent");
    }

    /// Sends requests together, and goes without their replies.
    pub(crate) fn leave(mut self, requests: &[Vec<String>]) {
        self.send(requests);
    }

    /// Sends requests together, and returns the last reply.
    pub(crate) fn call(&mut self, requests: &[Vec<String>]) -> Reply {
        self.send(requests);
        let mut replies = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        while replies.len() < requests.len() {
            let (done, reply) = self.parser.parse(&self.received).expect("a reply");
            self.received.drain(..done);
            match reply {
                Some(reply) => replies.push(reply),
                None => {
                    let read = self.stream.read(&mut buffer).expect("answered");
                    assert!(read > 0, "the connection was closed");
                    self.received.extend_from_slice(&buffer[..read]);
                }
            }
        }
        replies.pop().expect("one")
    }
}

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}

const ACCOUNTS: usize = 12;

fn account(n: usize) -> String {
    format!("account:{}", n % ACCOUNTS)
}

fn audit(client: &mut Client) -> i64 {
    let mut requests = vec![words(&["MULTI"])];
    requests.extend((0..ACCOUNTS).map(|n| words(&["GET", &account(n)])));
    requests.push(words(&["EXEC"]));
    let Reply::Array(all) = client.call(&requests) else {
        panic!("no audit");
    };
    all.into_iter()
        .map(|value| text(value).parse::<i64>().expect("a number"))
        .sum()
}

/// Transfers at all nodes, and audits, of which each sees all money; also single commands on the same accounts.
#[test]
fn money_is_conserved_at_each_audit() {
    for mut nodes in [spread(&[2, 1, 2]), start()] {
        for n in 0..ACCOUNTS {
            let set = text(nodes[0].call(&["SET", &account(n), "100"]));
            assert_eq!(set, "OK");
        }
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (number, node) in nodes.iter().enumerate() {
                let ends = &ends;
                let (mut payer, mut reader) = (Client::of(node), Client::of(node));
                scope.spawn(move || {
                    let mut n = number * 7;
                    while !ends.load(Ordering::Relaxed) {
                        n += 5;
                        let (from, to) = (account(n), account(n / 3));
                        let done = payer.call(&[
                            words(&["MULTI"]),
                            words(&["DECRBY", &from, "3"]),
                            words(&["INCRBY", &to, "3"]),
                            words(&["EXEC"]),
                        ]);
                        assert!(matches!(done, Reply::Array(_)), "{done:?}");
                        let one = payer.call(&[words(&["INCRBY", &to, "0"])]);
                        assert!(matches!(one, Reply::Integer(_)), "{one:?}");
                    }
                });
                scope.spawn(move || {
                    while !ends.load(Ordering::Relaxed) {
                        assert_eq!(audit(&mut reader), 100 * ACCOUNTS as i64);
                    }
                });
            }
            std::thread::sleep(Duration::from_secs(3));
            ends.store(true, Ordering::Relaxed);
        });
        are_forgotten(&mut nodes);
    }
}
