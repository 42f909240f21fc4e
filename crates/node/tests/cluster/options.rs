//! What may be chosen of transactions over nodes: reads of keys at several nodes as one, keys of several slots at the
//! redirecting port, and errors that undo all.

use crate::apart::{Client, are_forgotten, exec};
use crate::node::{Node, connect_all, has_all_copies, number, settings};
use crate::plain::{spread, text};
use crate::redirected::{ask, start};
use rufous_coordinator::meeting::Meeting;
use rufous_resp::reply::Reply;
use rufous_server::cluster::Settings;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

const KEYS: [&str; 6] = ["r1", "r2", "r3", "r4", "r5", "r6"];

fn call(client: &mut Client, words: &[&str]) -> Reply {
    let words = words.iter().map(|word| (*word).to_owned());
    client.call(&[words.collect()])
}

/// Sets all keys to one value, which grows, until told to stop.
fn set_all(at: SocketAddr, ends: &AtomicBool) -> u64 {
    let mut client = Client::at(at);
    let mut rounds = 0;
    while !ends.load(Ordering::Relaxed) {
        rounds += 1;
        let value = rounds.to_string();
        let words: Vec<&str> = KEYS.iter().flat_map(|key| [*key, &value]).collect();
        let words: Vec<&str> = ["MSET"].into_iter().chain(words).collect();
        assert_eq!(text(call(&mut client, &words)), "OK");
    }
    rounds
}

#[test]
fn reads_of_keys_at_several_nodes_are_one_transaction_unless_that_is_off() {
    let mut nodes = spread(&[2, 1, 1]);
    let begun = |node: &mut Node| number(&node.info(), "cluster_transactions");
    let read = |node: &mut Node| {
        let words: Vec<&str> = ["MGET"].into_iter().chain(KEYS).collect();
        node.call(&words)
    };
    let set = ["CONFIG", "SET", "cluster-atomic-reads", "no"];
    assert_eq!(text(nodes[1].call(&set)), "OK");
    read(&mut nodes[1]);
    assert_eq!(begun(&mut nodes[1]), 0, "split by node");
    let set = ["CONFIG", "SET", "cluster-atomic-reads", "yes"];
    assert_eq!(text(nodes[1].call(&set)), "OK");
    let (address, ends) = (nodes[0].address(), AtomicBool::new(false));
    let rounds = std::thread::scope(|scope| {
        let writer = scope.spawn(|| set_all(address, &ends));
        for _ in 0..300 {
            let Reply::Array(all) = read(&mut nodes[1]) else {
                panic!("no array");
            };
            assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
        }
        ends.store(true, Ordering::Relaxed);
        writer.join().expect("it wrote")
    });
    assert!(rounds > 1);
    assert_eq!(begun(&mut nodes[1]), 300);
    let info = nodes[1].info();
    let (alone, rounds) = (
        number(&info, "cluster_transactions_read"),
        number(&info, "cluster_transactions_read_rounds"),
    );
    assert!(alone > 0 && rounds >= 2 * alone, "{alone} {rounds}");
    let many: Vec<String> = (0..2000).map(|n| format!("none{n}")).collect();
    let words: Vec<&str> = ["EXISTS"]
        .into_iter()
        .chain(many.iter().map(|key| &key[..]))
        .collect();
    assert_eq!(nodes[1].call(&words), Reply::Integer(0));
    assert_eq!(begun(&mut nodes[1]), 300, "too many slots: split by node");
    for (words, count) in [(["EXISTS", "r1", "r2"], 2), (["TOUCH", "r3", "none"], 1)] {
        assert_eq!(nodes[1].call(&words), Reply::Integer(count));
    }
    let waits = nodes[1].info();
    assert_eq!(
        number(&waits, "cluster_transactions_outcomes"),
        begun(&mut nodes[1])
    );
    assert!(number(&waits, "cluster_transactions_waited_us") > 0);
    are_forgotten(&mut nodes);
}

#[test]
fn a_connection_to_the_redirecting_port_may_use_keys_of_several_slots() {
    let mut nodes = start();
    let door = nodes[1].door();
    assert!(ask(door, "MSET a 1 b 2").starts_with("-CROSSSLOT "));
    let mut client = Client::at(door);
    let moved = text(call(&mut client, &["SET", "a", "1"]));
    assert!(moved.starts_with("MOVED "), "{moved}");
    assert_eq!(
        text(call(&mut client, &["CLIENT", "CROSSSLOT", "ON"])),
        "OK"
    );
    assert_eq!(text(call(&mut client, &["MSET", "a", "1", "b", "2"])), "OK");
    assert_eq!(text(call(&mut client, &["GET", "b"])), "2");
    assert_eq!(text(call(&mut client, &["WATCH", "a"])), "OK");
    let watches = text(call(&mut client, &["CLIENT", "CROSSSLOT", "OFF"]));
    assert!(watches.contains("send UNWATCH first"), "{watches}");
    assert_eq!(text(call(&mut client, &["UNWATCH"])), "OK");
    assert_eq!(text(call(&mut client, &["MULTI"])), "OK");
    let inside = text(call(&mut client, &["CLIENT", "CROSSSLOT", "OFF"]));
    assert_eq!(inside, "QUEUED");
    call(&mut client, &["DISCARD"]);
    assert_eq!(text(call(&mut client, &["RENAME", "a", "c"])), "OK");
    assert_eq!(
        text(call(&mut client, &["CLIENT", "CROSSSLOT", "OFF"])),
        "OK"
    );
    let crosses = text(call(&mut client, &["MSET", "a", "1", "b", "2"]));
    assert!(crosses.starts_with("CROSSSLOT "), "{crosses}");
    assert_eq!(text(nodes[1].call(&["GET", "c"])), "1");
}

/// What is sent together is executed in order, also where the last requests are served in another way.
#[test]
fn pipelines_keep_their_order_as_they_leave_and_enter_the_plain_way() {
    let meeting = Meeting::default();
    let settings = || Settings {
        clients: Some(([127, 0, 0, 1], 0).into()),
        copies: 2,
        ..settings(&meeting)
    };
    let mut nodes = vec![Node::start(2, settings()), Node::start(1, settings())];
    connect_all(&mut nodes);
    for node in &mut nodes {
        node.until("copies everywhere", has_all_copies);
    }
    let mut client = Client::at(nodes[1].door());
    let request = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    for leaves in [&["CLIENT", "CROSSSLOT", "OFF"][..], &["RESET"]] {
        for round in 0..50 {
            // Each node has a copy of each key, and shows it.
            let (key, value) = (format!("k{}", round % 5), round.to_string());
            let pipeline: [Vec<String>; 4] = [
                request(&["CLIENT", "CROSSSLOT", "ON"]),
                request(&["SET", &key, &value]),
                request(leaves),
                request(&["GET", &key]),
            ];
            assert_eq!(text(client.call(&pipeline)), value, "{leaves:?}");
        }
    }
}

#[test]
fn an_error_undoes_a_transaction_where_the_client_wants_that() {
    let mut nodes = spread(&[2, 1, 1]);
    let node = &mut nodes[1];
    for n in 0..20 {
        let (a, b, c) = (format!("a{n}"), format!("b{n}"), format!("c{n}"));
        let wrong: [&[&str]; 4] = [
            &["SET", &a, "1"],
            &["RPUSH", &b, "x"],
            &["INCR", &b],
            &["SET", &c, "1"],
        ];
        assert_eq!(
            text(node.call(&["CLIENT", "ROLLBACK-ON-ERROR", "ON"])),
            "OK"
        );
        let undone = text(exec(node, &wrong));
        assert!(undone.starts_with("EXECABORT "), "{undone}");
        assert!(undone.contains("WRONGTYPE"), "{undone}");
        assert_eq!(node.call(&["EXISTS", &a, &b, &c]), Reply::Integer(0));
        let pairs: [&[&str]; 2] = [&["SET", &a, "1"], &["MSET", &b, "1", &c]];
        let undone = text(exec(node, &pairs));
        assert!(undone.starts_with("EXECABORT "), "{undone}");
        assert_eq!(node.call(&["EXISTS", &a, &b, &c]), Reply::Integer(0));
        let selects: [&[&str]; 3] = [&["SET", &a, "1"], &["SELECT", "99"], &["SET", &b, "1"]];
        let undone = text(exec(node, &selects));
        assert!(undone.starts_with("EXECABORT "), "{undone}");
        assert_eq!(node.call(&["EXISTS", &a, &b, &c]), Reply::Integer(0));
        // Without an error, each command has its reply.
        let right: [&[&str]; 3] = [&["SET", &a, "1"], &["INCRBY", &b, "2"], &["MGET", &a, &b]];
        let Reply::Array(all) = exec(node, &right) else {
            panic!("not executed");
        };
        assert_eq!(all[1], Reply::Integer(2));
        assert_eq!(node.call(&["DEL", &a, &b]), Reply::Integer(2));
        assert_eq!(
            text(node.call(&["CLIENT", "ROLLBACK-ON-ERROR", "OFF"])),
            "OK"
        );
        exec(node, &wrong);
        assert_eq!(node.call(&["EXISTS", &a, &b, &c]), Reply::Integer(3));
    }
    are_forgotten(&mut nodes);
}
