//! Commands about all keys, at whichever node.

use crate::node::Node;
use crate::plain::{connect, exchange, keys_of, resp, spread, text};
use rufous_resp::reply::Reply;
use std::collections::BTreeSet;

pub(crate) fn names(reply: Reply) -> Vec<String> {
    match reply {
        Reply::Array(all) => all.into_iter().map(text).collect(),
        other => panic!("{other:?}"),
    }
}

/// All keys by a whole walk, and how many steps it took.
pub(crate) fn walk(node: &mut Node, count: &str) -> (Vec<String>, usize) {
    let (mut all, mut steps, mut cursor) = (Vec::new(), 0, "0".to_owned());
    loop {
        let Reply::Array(mut reply) = node.call(&["SCAN", &cursor, "COUNT", count]) else {
            panic!("no step");
        };
        all.extend(names(reply.pop().expect("keys")));
        cursor = text(reply.pop().expect("a cursor"));
        steps += 1;
        if cursor == "0" {
            return (all, steps);
        }
        assert!(cursor.parse::<i64>().is_ok(), "{cursor}");
    }
}

#[test]
fn they_are_about_the_keys_of_all_nodes() {
    let mut nodes = spread(&[2, 3, 1]);
    let keys: BTreeSet<String> = (0..300).map(|n| format!("key:{n}")).collect();
    for key in &keys {
        nodes[0].call(&["SET", key, "1"]);
    }
    for node in &mut nodes {
        assert_eq!(node.call(&["DBSIZE"]), Reply::Integer(300));
        let all = names(node.call(&["KEYS", "*"]));
        assert_eq!(all.len(), 300);
        assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), keys);
        assert_eq!(names(node.call(&["KEYS", "key:7"])), ["key:7"]);
        assert_eq!(names(node.call(&["KEYS", "key:29?"])).len(), 10);
        assert!(names(node.call(&["KEYS", "nothing*"])).is_empty());
        for count in ["5", "1000"] {
            let (all, steps) = walk(node, count);
            assert!(steps >= 3, "each node has a step of its own");
            assert_eq!(all.len(), 300, "each key once");
            assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), keys);
        }
        let drawn: BTreeSet<String> = (0..40).map(|_| text(node.call(&["RANDOMKEY"]))).collect();
        assert!(drawn.len() > 5 && drawn.is_subset(&keys), "{drawn:?}");
        let wrong = text(node.call(&["SCAN", "x"]));
        assert_eq!(wrong, "ERR invalid cursor");
        let nothing = node.call(&["SCAN", "18446744073709551615"]);
        assert_eq!(
            nothing,
            Reply::Array(vec![Reply::Bulk(b"0".into()), Reply::Array(vec![])])
        );
    }
    nodes[1].call(&["SELECT", "3"]);
    assert_eq!(nodes[1].call(&["DBSIZE"]), Reply::Integer(0));
    assert_eq!(nodes[1].call(&["RANDOMKEY"]), Reply::Null);
    for n in 0..30 {
        nodes[1].call(&["SET", &format!("other:{n}"), "1"]);
    }
    assert_eq!(nodes[1].call(&["DBSIZE"]), Reply::Integer(30));
    assert_eq!(text(nodes[1].call(&["FLUSHDB"])), "OK");
    while nodes[1].call(&["DBSIZE"]) != Reply::Integer(0) {
        std::thread::yield_now();
    }
    assert_eq!(nodes[2].call(&["DBSIZE"]), Reply::Integer(300));
    assert_eq!(text(nodes[2].call(&["MULTI"])), "OK");
    let within = text(nodes[2].call(&["FLUSHALL"]));
    assert!(
        within.starts_with("CROSSNODE 'flushall' is about all nodes"),
        "{within}"
    );
    nodes[2].call(&["DISCARD"]);
    assert_eq!(text(nodes[1].call(&["FLUSHALL"])), "OK");
    for node in &mut nodes {
        // Keys that are being removed are counted until a worker hears that it is done.
        while node.call(&["DBSIZE"]) != Reply::Integer(0) || keys_of(node) > 0 {
            std::thread::yield_now();
        }
    }
}

#[test]
fn they_keep_their_place_in_a_pipeline() {
    let nodes = spread(&[2, 1, 2]);
    for node in &nodes {
        let mut socket = connect(node.address());
        let (mut requests, mut replies) = (Vec::new(), Vec::new());
        let mut add = |words: &[&str], reply: &str| {
            requests.extend(resp(words));
            replies.extend_from_slice(reply.as_bytes());
        };
        for _ in 0..10 {
            for n in 0..20 {
                add(&["SET", &format!("k{n}"), "1"], "+OK\r\n");
            }
            add(&["MGET", "k0", "k1"], "*2\r\n$1\r\n1\r\n$1\r\n1\r\n");
            add(&["FLUSHALL"], "+OK\r\n");
            add(&["GET", "k1"], "$-1\r\n");
            add(&["SET", "k2", "1"], "+OK\r\n");
            add(&["KEYS", "k2"], "*1\r\n$2\r\nk2\r\n");
            add(&["FLUSHDB"], "+OK\r\n");
        }
        exchange(&mut socket, &requests, &replies);
    }
}
