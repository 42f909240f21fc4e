//! Which lattice keys are listed to a client: those of the node that it is connected to, each once.

use crate::gossip::{agree, bulk, configured, likes, serve};
use crate::node::{Node, connect_all};
use crate::plain::text;
use crate::redirected::ask;
use crate::wide::{names, walk};
use rufous_coordinator::meeting::Meeting;
use rufous_resp::reply::Reply;
use rufous_server::config::Config;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Nodes that exchange nothing for some seconds: what one shows at once is its own.
// slow
fn slow_nodes(workers: &[usize]) -> Vec<Node> {
    let meeting = Meeting::default();
    let mut keyspace = likes();
    keyspace.gossip_ms = 3_000;
    let config =
        |workers: &usize| -> Config { configured(&meeting, *workers, vec![keyspace.clone()]) };
    let mut nodes: Vec<_> = workers.iter().map(|of| Node::of(&config(of))).collect();
    connect_all(&mut nodes);
    let serving: Vec<_> = workers.iter().map(|workers| *workers as u64).collect();
    serve(&mut nodes, &serving);
    nodes
}

/// What a client is shown is alike by all commands. Returns it.
fn listed(node: &mut Node) -> BTreeSet<String> {
    let all: BTreeSet<_> = names(node.call(&["KEYS", "*"])).into_iter().collect();
    for count in ["3", "1000"] {
        let (seen, _) = walk(node, count);
        assert_eq!(seen.len(), all.len(), "each once");
        assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), all);
    }
    assert_eq!(node.call(&["DBSIZE"]), Reply::Integer(all.len() as i64));
    all
}

#[test]
fn a_client_is_shown_its_own_writes_at_once() {
    let mut nodes = slow_nodes(&[2, 3]);
    let mut all = BTreeSet::new();
    let mut own = Vec::new();
    for (n, node) in nodes.iter_mut().enumerate() {
        let mine: BTreeSet<_> = (0..20).map(|i| format!("likes:{n}:{i}")).collect();
        let strict: Vec<_> = (0..20).map(|i| format!("key:{n}:{i}")).collect();
        for key in mine.iter().chain(&strict) {
            assert_eq!(text(node.call(&["SET", key, "1"])), "OK");
        }
        all.extend(mine.iter().chain(&strict).cloned());
        own.push(mine);
    }
    for (node, own) in nodes.iter_mut().zip(&own) {
        let shown = listed(node);
        assert!(own.is_subset(&shown), "{shown:?}");
        for key in own {
            assert_eq!(names(node.call(&["KEYS", key])), [key.as_str()]);
        }
        let strict = shown.iter().filter(|key| key.starts_with("key:"));
        assert_eq!(strict.count(), 40);
    }
    for key in own.iter().flatten() {
        agree(&mut nodes, &["GET", key], &bulk("1"));
    }
    for node in &mut nodes {
        assert_eq!(listed(node), all);
    }
    continued_at_the_other_node(&mut nodes, &all);
    redirected_clients(&nodes, &all);
}

/// A pool has connections to both nodes: none of the keys that both have is missed.
fn continued_at_the_other_node(nodes: &mut [Node], all: &BTreeSet<String>) {
    for first in [0, 1] {
        for count in ["1", "7"] {
            let (mut seen, mut cursor, mut steps) = (BTreeSet::new(), "0".to_owned(), first);
            loop {
                let request = ["SCAN", &cursor, "COUNT", count];
                let Reply::Array(mut reply) = nodes[steps % 2].call(&request) else {
                    panic!("no step");
                };
                seen.extend(names(reply.pop().expect("keys")));
                cursor = text(reply.pop().expect("a cursor"));
                steps += 1;
                if cursor == "0" {
                    break;
                }
            }
            assert_eq!(seen, *all, "{first} {count}");
        }
    }
}

/// Clients that know the cluster ask each node: together they list each key once, when the workers of their connections
/// have received all.
fn redirected_clients(nodes: &[Node], all: &BTreeSet<String>) {
    let begun = Instant::now();
    loop {
        let mut seen: Vec<String> = Vec::new();
        for node in nodes {
            let keys = ask(node.door(), "KEYS *");
            seen.extend(keys.split("\r\n").skip(2).step_by(2).map(str::to_owned));
        }
        let listed: BTreeSet<_> = seen.iter().cloned().collect();
        assert_eq!(listed.len(), seen.len(), "each once");
        if listed == *all {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{listed:?}");
    }
    // Likewise of all of their connections, some later.
    let size = |node: &Node| {
        let size = ask(node.door(), "DBSIZE");
        let size = size.trim_matches([':', '\r', '\n']).parse::<usize>();
        size.expect("a number")
    };
    while nodes.iter().map(size).sum::<usize>() != all.len() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the sum");
    }
}
