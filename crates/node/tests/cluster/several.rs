//! Writes of several slots: refused where one could be without the other.

use crate::node::{Node, connect_all, has_all_copies, settings};
use crate::plain::{heads, spread, text};
use rufous_base::slot::slot_of;
use rufous_coordinator::meeting::Meeting;
use rufous_resp::reply::Reply;
use rufous_server::cluster::Settings;

/// Nodes that both have all slots.
pub(crate) fn start() -> Vec<Node> {
    let meeting = Meeting::default();
    let settings = || Settings {
        copies: 2,
        ..settings(&meeting)
    };
    let mut nodes = vec![Node::start(2, settings()), Node::start(1, settings())];
    connect_all(&mut nodes);
    for node in &mut nodes {
        node.until("copies everywhere", has_all_copies);
    }
    nodes
}

/// Two keys of two slots that this node answers for.
fn two_here(node: &mut Node) -> [String; 2] {
    let mut found = Vec::new();
    for n in 0..100 {
        let key = format!("key:{n}");
        if heads(node, &key) {
            found.push(key);
        }
        if let [a, b] = &found[..] {
            assert_ne!(slot_of(a.as_bytes()), slot_of(b.as_bytes()));
            return [a.clone(), b.clone()];
        }
    }
    panic!("it answers for nothing");
}

#[test]
fn writes_of_several_slots_with_copies_are_made_at_all_of_them() {
    let mut nodes = start();
    for node in &mut nodes {
        let [a, b] = &two_here(node);
        assert_eq!(text(node.call(&["SET", a, "1"])), "OK");
        assert_eq!(node.call(&["COPY", a, b]), Reply::Integer(1));
        assert_eq!(node.call(&["BITOP", "NOT", b, a]), Reply::Integer(1));
        assert_eq!(text(node.call(&["RENAME", a, b])), "OK");
        assert_eq!(node.call(&["SINTERSTORE", b, a]), Reply::Integer(0));
        assert_eq!(node.call(&["EXISTS", a, b]), Reply::Integer(0));
        let refused = text(node.call(&["SWAPDB", "0", "1"]));
        assert!(refused.contains("slots have copies"), "{refused}");
        for words in [["SET", a, "2"], ["SET", b, "2"]] {
            node.call(&["MULTI"]);
            assert_eq!(text(node.call(&["GET", b])), "QUEUED");
            assert_eq!(text(node.call(&words)), "QUEUED");
            let done = node.call(&["EXEC"]);
            assert!(matches!(done, Reply::Array(_)), "one is written: {done:?}");
        }
        node.call(&["MULTI"]);
        node.call(&["SET", a, "3"]);
        node.call(&["RENAMENX", a, b]);
        node.call(&["RENAME", a, b]);
        let done = node.call(&["EXEC"]);
        let ok = Reply::Simple(b"OK".to_vec());
        assert_eq!(done, Reply::Array(vec![ok.clone(), Reply::Integer(0), ok]));
        let values = node.call(&["MGET", a, b]);
        let three = Reply::Bulk(b"3".to_vec());
        assert_eq!(values, Reply::Array(vec![Reply::Null, three]));
        assert_eq!(node.call(&["DEL", a, b]), Reply::Integer(1));
        assert_eq!(text(node.call(&["MSET", "{t}a", "1", "{t}b", "1"])), "OK");
        assert_eq!(text(node.call(&["RENAME", "{t}a", "{t}c"])), "OK");
    }
}

#[test]
fn what_has_no_copies_is_written_together() {
    let mut nodes = spread(&[2, 1]);
    for node in &mut nodes {
        let [a, b] = &two_here(node);
        assert_eq!(text(node.call(&["MSET", a, "2", b, "2"])), "OK");
        node.call(&["MULTI"]);
        node.call(&["RENAME", a, b]);
        let done = node.call(&["EXEC"]);
        assert!(matches!(done, Reply::Array(_)), "{done:?}");
        assert_eq!(node.call(&["EXISTS", a, b]), Reply::Integer(1));
    }
}
