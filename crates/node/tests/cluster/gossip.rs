//! Lattice keyspaces that all nodes have: written at any, read at any, the same
//! everywhere in the end.

use crate::node::{Node, config, connect_all, has_all_copies, number, settings};
use crate::plain::{connect, exchange, resp, text};
use crate::redirected::ask;
use crate::wide::{names, walk};
use rufous_coordinator::meeting::Meeting;
use rufous_kernel::keyspace::{Keyspace, Regime};
use rufous_resp::reply::Reply;
use rufous_server::cluster::Settings;
use rufous_server::config::{Config, DebugCommand};
use std::collections::BTreeSet;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn likes() -> Keyspace {
    let mut keyspace = Keyspace::new("likes", b"likes:");
    (keyspace.regime, keyspace.threads) = (Regime::Lattice, 0);
    keyspace.gossip_ms = 10;
    keyspace
}

pub(crate) fn configured(meeting: &Meeting, workers: usize, keyspaces: Vec<Keyspace>) -> Config {
    let cluster = Settings {
        clients: Some(([127, 0, 0, 1], 0).into()),
        ..settings(meeting)
    };
    Config {
        keyspaces,
        ..config(workers, cluster)
    }
}

fn start(meeting: &Meeting, workers: usize) -> Node {
    Node::of(&configured(meeting, workers, vec![likes()]))
}

fn start_in(meeting: &Meeting, workers: usize, folder: &Path) -> Node {
    Node::of(&Config {
        folder: true,
        appendonly: true,
        dir: folder.display().to_string(),
        ..configured(meeting, workers, vec![likes()])
    })
}

/// Waits until each serves lattice keys at all of its workers.
pub(crate) fn serve(nodes: &mut [Node], workers: &[u64]) {
    for (node, workers) in nodes.iter_mut().zip(workers) {
        node.until("lattice keys are served", |info| {
            number(info, "cluster_gossip_workers_serving") == *workers
        });
    }
}

/// Waits until all nodes say the same to a request.
pub(crate) fn agree(nodes: &mut [Node], words: &[&str], expected: &Reply) {
    let begun = Instant::now();
    for (at, node) in nodes.iter_mut().enumerate() {
        loop {
            let reply = node.call(words);
            if reply == *expected {
                break;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "{words:?} at {at}: {reply:?}, {:#?}",
                node.info()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

pub(crate) fn bulk(text: &str) -> Reply {
    Reply::Bulk(text.into())
}

#[test]
fn what_each_node_is_told_all_have_in_the_end() {
    let meeting = Meeting::default();
    let workers = [2, 1, 3];
    let mut nodes: Vec<_> = workers.iter().map(|n| start(&meeting, *n)).collect();
    connect_all(&mut nodes);
    serve(&mut nodes, &[2, 1, 3]);
    for round in 1..=20 {
        for (at, node) in nodes.iter_mut().enumerate() {
            for key in 0..10 {
                let key = format!("likes:{key}");
                let reply = node.call(&["INCRBY", &key, "3"]);
                assert!(matches!(reply, Reply::Integer(n) if n >= 3 * round));
            }
            let member = format!("{at}-{round}");
            assert_eq!(
                node.call(&["SADD", "likes:who", &member]),
                Reply::Integer(1)
            );
        }
    }
    for key in 0..10 {
        agree(&mut nodes, &["GET", &format!("likes:{key}")], &bulk("180"));
    }
    agree(&mut nodes, &["SCARD", "likes:who"], &Reply::Integer(60));
    // Whichever node a client knows has them.
    for node in &nodes {
        for key in 0..10 {
            let reply = ask(node.door(), &format!("GET likes:{key}"));
            assert_eq!(reply, "$3\r\n180\r\n");
        }
    }
    // What is deleted at one is gone at all, and stays so.
    for key in 0..10 {
        let reply = nodes[key % 3].call(&["DEL", &format!("likes:{key}")]);
        assert_eq!(reply, Reply::Integer(1));
    }
    for key in 0..10 {
        agree(&mut nodes, &["GET", &format!("likes:{key}")], &Reply::Null);
    }
    std::thread::sleep(Duration::from_millis(300));
    for key in 0..10 {
        agree(&mut nodes, &["GET", &format!("likes:{key}")], &Reply::Null);
        let key = format!("likes:{key}");
        assert_eq!(
            nodes[key.len() % 3].call(&["EXISTS", &key]),
            Reply::Integer(0)
        );
    }
    for node in &mut nodes {
        let info = node.info();
        assert!(number(&info, "cluster_gossip_batches") > 0);
        assert!(number(&info, "cluster_gossip_bytes") > 0);
        assert!(number(&info, "cluster_gossip_digests") > 0);
        assert_eq!(number(&info, "cluster_gossip_behind"), 0);
        assert_eq!(number(&info, "cluster_gossip_refused"), 0);
        let lags = info
            .keys()
            .filter(|key| key.starts_with("cluster_gossip_lag_us_n"));
        assert_eq!(lags.count(), 2);
    }
}

/// Keys that a node is the head of.
fn strict_keys(node: &Node, count: usize) -> Vec<String> {
    let is_its = |key: &String| ask(node.door(), &format!("SET {key} 0")) == "+OK\r\n";
    let all = (0..).map(|n| format!("strict:{n}"));
    all.filter(is_its).take(count).collect()
}

/// Whether a client has been sent anything.
fn is_answered(client: &TcpStream) -> bool {
    client.set_nonblocking(true).expect("set");
    let is_answered = client.peek(&mut [0]).is_ok();
    client.set_nonblocking(false).expect("set");
    is_answered
}

#[test]
fn lattice_keys_do_not_wait_for_writes_that_wait_for_copies() {
    let meeting = Meeting::default();
    let mut config = configured(&meeting, 1, vec![likes()]);
    if let Some(cluster) = &mut config.cluster {
        cluster.copies = 2;
    }
    config.enable_debug_command = DebugCommand::Yes;
    let mut nodes = vec![Node::of(&config), Node::of(&config)];
    serve(&mut nodes, &[1, 1]);
    for node in &mut nodes {
        node.until("all slots have two copies", has_all_copies);
    }
    let key = strict_keys(&nodes[0], 1).remove(0);
    let mut deaf = connect(nodes[1].address());
    let mut strict = connect(nodes[0].address());
    let mut lattice = connect(nodes[0].address());
    let is_passed = (1..=10).any(|round| {
        // The other node is there for who coordinates, and hears nothing.
        deaf.write_all(&resp(&["DEBUG", "SLEEP", "1"]))
            .expect("sent");
        std::thread::sleep(Duration::from_millis(50));
        strict
            .write_all(&resp(&["SET", &key, &round.to_string()]))
            .expect("sent");
        std::thread::sleep(Duration::from_millis(20));
        let all = [resp(&["INCR", "likes:a"]), resp(&["PING"])].concat();
        let said = format!(":{round}\r\n+PONG\r\n");
        exchange(&mut lattice, &all, said.as_bytes());
        // On a machine that is busy enough the other is awake by now.
        let is_passed = !is_answered(&strict);
        exchange(&mut strict, b"", b"+OK\r\n");
        exchange(&mut deaf, b"", b"+OK\r\n");
        is_passed
    });
    assert!(is_passed, "the reply waited for the other node");
    // One that has asked for both is answered in order.
    deaf.write_all(&resp(&["DEBUG", "SLEEP", "0.3"]))
        .expect("sent");
    let all = [resp(&["SET", &key, "9"]), resp(&["SADD", "likes:b", "x"])].concat();
    exchange(&mut strict, &all, b"+OK\r\n:1\r\n");
}

#[test]
fn who_joins_later_is_told_what_was_there() {
    let meeting = Meeting::default();
    let mut nodes = vec![start(&meeting, 2)];
    serve(&mut nodes, &[2]);
    for n in 0..300 {
        nodes[0].call(&["SET", &format!("likes:{n}"), "1"]);
    }
    nodes.push(start(&meeting, 1));
    serve(&mut nodes, &[2, 1]);
    // It is served only when all is there.
    for n in 0..300 {
        assert_eq!(nodes[1].call(&["GET", &format!("likes:{n}")]), bulk("1"));
    }
}

#[test]
fn a_node_that_was_away_hears_what_it_missed_and_nothing_comes_back() {
    let folders = [0, 1, 2].map(|_| tempfile::tempdir().expect("a folder"));
    let open = |meeting: &Meeting, n: usize| start_in(meeting, 1 + n % 2, folders[n].path());
    let meeting = Meeting::default();
    let mut nodes: Vec<_> = (0..3).map(|n| open(&meeting, n)).collect();
    connect_all(&mut nodes);
    serve(&mut nodes, &[1, 2, 1]);
    for n in 0..60 {
        let reply = nodes[n % 3].call(&["INCRBY", &format!("likes:{n}"), "5"]);
        assert_eq!(reply, Reply::Integer(5));
    }
    for n in 0..60 {
        agree(&mut nodes, &["GET", &format!("likes:{n}")], &bulk("5"));
    }
    nodes.pop().expect("a node").stop();
    for n in 0..20 {
        nodes[0].call(&["DEL", &format!("likes:{n}")]);
    }
    for n in 20..40 {
        nodes[1].call(&["INCRBY", &format!("likes:{n}"), "2"]);
    }
    nodes[0].call(&["SET", "likes:new", "here"]);
    nodes.push(open(&meeting, 2));
    serve(&mut nodes, &[1, 2, 1]);
    for n in 0..20 {
        agree(&mut nodes, &["GET", &format!("likes:{n}")], &Reply::Null);
    }
    for n in 20..40 {
        agree(&mut nodes, &["GET", &format!("likes:{n}")], &bulk("7"));
    }
    agree(&mut nodes, &["GET", "likes:new"], &bulk("here"));
    // All go on counting where they were, after a start of all of them, too.
    nodes.into_iter().for_each(Node::stop);
    let mut nodes: Vec<_> = (0..3).map(|n| open(&meeting, n)).collect();
    connect_all(&mut nodes);
    serve(&mut nodes, &[1, 2, 1]);
    for (n, node) in nodes.iter_mut().enumerate() {
        for key in 40..60 {
            let reply = node.call(&["INCRBY", &format!("likes:{key}"), "1"]);
            assert!(matches!(reply, Reply::Integer(6..=8)), "{reply:?} at {n}");
        }
    }
    for key in 40..60 {
        agree(&mut nodes, &["GET", &format!("likes:{key}")], &bulk("8"));
    }
    for n in 0..20 {
        agree(&mut nodes, &["GET", &format!("likes:{n}")], &Reply::Null);
    }
}

/// Others may have deleted and forgotten what its files have: it has to come with nothing.
#[test]
fn who_comes_with_data_of_its_own_loses_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut alone = [start_in(&Meeting::default(), 2, folder.path())];
    serve(&mut alone, &[2]);
    assert_eq!(
        alone[0].call(&["INCRBY", "likes:1", "5"]),
        Reply::Integer(5)
    );
    alone[0].call(&["SET", "likes:mine", "1"]);
    alone.into_iter().for_each(Node::stop);

    let meeting = Meeting::default();
    let mut nodes = vec![start(&meeting, 1)];
    serve(&mut nodes, &[1]);
    assert_eq!(
        nodes[0].call(&["INCRBY", "likes:1", "2"]),
        Reply::Integer(2)
    );
    nodes.push(start_in(&meeting, 2, folder.path()));
    serve(&mut nodes, &[1, 2]);
    for (key, expected) in [("likes:1", bulk("2")), ("likes:mine", Reply::Null)] {
        agree(&mut nodes, &["GET", key], &expected);
    }
    // What it has from now on is its own, and it keeps that.
    assert_eq!(
        nodes[1].call(&["INCRBY", "likes:1", "1"]),
        Reply::Integer(3)
    );
    nodes.pop().expect("a node").stop();
    nodes.push(start_in(&meeting, 2, folder.path()));
    serve(&mut nodes, &[1, 2]);
    agree(&mut nodes, &["GET", "likes:1"], &bulk("3"));
    assert_eq!(
        nodes[1].call(&["INCRBY", "likes:1", "1"]),
        Reply::Integer(4)
    );
    agree(&mut nodes, &["GET", "likes:1"], &bulk("4"));
}

#[test]
fn what_needs_all_nodes_together_is_refused() {
    let meeting = Meeting::default();
    let mut nodes = vec![start(&meeting, 1), start(&meeting, 2)];
    connect_all(&mut nodes);
    serve(&mut nodes, &[1, 2]);
    for node in &mut nodes {
        let flush = text(node.call(&["FLUSHALL"]));
        assert!(flush.contains("cannot be coordination-free"), "{flush}");
        let make = ["KEYSPACE", "CREATE", "x", "PREFIX", "x:", "REGIME"];
        let made = text(node.call(&[&make[..], &["LATTICE"]].concat()));
        assert!(made.starts_with("ERR keyspaces are not changed"), "{made}");
        let alter = text(node.call(&["KEYSPACE", "ALTER", "likes", "REGIME", "STRICT"]));
        assert!(
            alter.starts_with("ERR keyspaces are not changed"),
            "{alter}"
        );
        let drop = text(node.call(&["KEYSPACE", "DROP", "likes"]));
        assert!(drop.starts_with("ERR keyspaces are not changed"), "{drop}");
    }
}

/// Waits until no node applies another mapping.
fn at_rest(nodes: &mut [Node]) {
    let begun = Instant::now();
    let mut before = Vec::new();
    loop {
        let epochs = nodes
            .iter_mut()
            .map(|node| number(&node.info(), "cluster_epoch"));
        let epochs: Vec<u64> = epochs.collect();
        if epochs == before && epochs.iter().all(|epoch| *epoch == epochs[0]) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{epochs:?}");
        before = epochs;
        std::thread::sleep(Duration::from_secs(1));
    }
}

#[test]
fn each_key_is_counted_and_listed_once_whoever_has_it() {
    let meeting = Meeting::default();
    let workers = [2, 3];
    let of = |workers: &usize| {
        let mut config = configured(&meeting, *workers, vec![likes()]);
        if let Some(cluster) = &mut config.cluster {
            cluster.copies = 2;
        }
        Node::of(&config)
    };
    let mut nodes: Vec<_> = workers.iter().map(of).collect();
    connect_all(&mut nodes);
    serve(&mut nodes, &[2, 3]);
    for node in &mut nodes {
        node.until("copies everywhere", has_all_copies);
    }
    let strict = (0..100).map(|n| format!("key:{n}"));
    let lattice = (0..100).map(|n| format!("likes:{n}"));
    let keys: BTreeSet<String> = strict.chain(lattice).collect();
    for (at, key) in keys.iter().enumerate() {
        nodes[at % 2].call(&["SET", key, "1", "EX", "1000"]);
    }
    for key in &keys {
        agree(&mut nodes, &["GET", key], &bulk("1"));
    }
    // While heads change, a walk over all nodes may meet a key at both.
    at_rest(&mut nodes);
    let mut expiring = 0;
    for node in &mut nodes {
        assert_eq!(node.call(&["DBSIZE"]), Reply::Integer(200));
        let all = names(node.call(&["KEYS", "*"]));
        assert_eq!(all.len(), 200);
        assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), keys);
        for key in ["key:7", "likes:7"] {
            assert_eq!(names(node.call(&["KEYS", key])), [key]);
        }
        for count in ["5", "1000"] {
            let (all, _) = walk(node, count);
            assert_eq!(all.len(), 200);
            assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), keys);
        }
        // What each says of itself comes to the same.
        let info = text(node.call(&["INFO", "keyspace"]));
        let db = info.lines().find_map(|line| line.strip_prefix("db0:keys="));
        let own: Vec<usize> = db
            .expect("it has some")
            .split(",expires=")
            .filter_map(|number| number.split(',').next()?.parse().ok())
            .collect();
        assert_eq!(own[0], own[1]);
        expiring += own[1];
    }
    assert_eq!(expiring, 200);
}

#[test]
fn nodes_with_other_lattice_keyspaces_are_refused() {
    let meeting = Meeting::default();
    let mut nodes = vec![start(&meeting, 1)];
    serve(&mut nodes, &[1]);
    nodes.push(Node::of(&configured(&meeting, 1, Vec::new())));
    nodes[1].until("it refuses", |info| number(info, "cluster_refused") > 0);
    nodes[0].until("it is refused", |info| {
        number(info, "cluster_refused_by_nodes") > 0
    });
    assert_eq!(nodes[0].call(&["INCR", "likes:1"]), Reply::Integer(1));
}
