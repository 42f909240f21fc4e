//! Keys along chains of several nodes: written at one, and there when it has gone.

use crate::node::{Node, config, connect_all, has_all_copies, settings};
use crate::redirected::try_ask;
use rufous_coordinator::meeting::Meeting;
use rufous_server::cluster::Settings;
use rufous_server::config::Config;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// Errors that pass.
const WAITS: [&str; 3] = ["TRYAGAIN ", "CLUSTERDOWN ", "LOADING "];

fn start(meeting: &Meeting, copies: usize, workers: usize) -> Node {
    Node::start(
        workers,
        Settings {
            clients: Some(([127, 0, 0, 1], 0).into()),
            copies,
            ..settings(meeting)
        },
    )
}

/// Does a request wherever the cluster says that it is to be done.
fn follow(from: SocketAddr, request: &str) -> String {
    let begun = Instant::now();
    let mut at = from;
    loop {
        // A node that has just ended is named until the next mapping.
        let Some(reply) = try_ask(at, request) else {
            assert!(
                begun.elapsed() < PATIENCE,
                "{request}: {at} does not listen"
            );
            std::thread::sleep(Duration::from_millis(20));
            at = from;
            continue;
        };
        let error = reply.strip_prefix('-').unwrap_or_default();
        if error.starts_with("MOVED ") {
            let to = error.trim_end().rsplit_once(' ').map(|(_, to)| to);
            at = to.expect("where").parse().expect("an address");
        } else if !WAITS.iter().any(|wait| error.starts_with(wait)) {
            return reply;
        }
        assert!(begun.elapsed() < PATIENCE, "{request}: {reply}");
        if !error.starts_with("MOVED ") {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn key(n: usize) -> String {
    format!("key:{n}")
}

#[test]
fn what_was_written_is_there_when_a_node_has_gone() {
    let meeting = Meeting::default();
    let mut nodes = vec![start(&meeting, 2, 2)];
    nodes[0].until("it has all slots", |info| info["cluster_epoch"] == "1");
    let door = nodes[0].door();
    for n in 0..50 {
        assert_eq!(follow(door, &format!("SET {} {n}", key(n))), "+OK\r\n");
    }
    // One with another number of workers: each slot is another worker's there.
    nodes.push(start(&meeting, 2, 3));
    connect_all(&mut nodes);
    for node in &mut nodes {
        node.until("copies everywhere", has_all_copies);
    }
    for n in 50..100 {
        assert_eq!(follow(door, &format!("SET {} {n}", key(n))), "+OK\r\n");
    }
    nodes.remove(0).stop();
    let door = nodes[0].door();
    for n in 0..100 {
        let text = n.to_string();
        let reply = format!("${}\r\n{text}\r\n", text.len());
        assert_eq!(follow(door, &format!("GET {}", key(n))), reply);
    }
}

#[test]
fn all_nodes_start_again_with_what_they_had() {
    let folders = [0, 1].map(|_| tempfile::tempdir().expect("a folder"));
    let open = |meeting: &Meeting, n: usize, workers: usize| {
        let settings = Settings {
            clients: Some(([127, 0, 0, 1], 0).into()),
            copies: 2,
            ..settings(meeting)
        };
        Node::of(&Config {
            folder: true,
            appendonly: true,
            dir: folders[n].path().display().to_string(),
            ..config(workers, settings)
        })
    };
    let meeting = Meeting::default();
    let mut nodes = vec![open(&meeting, 0, 2), open(&meeting, 1, 2)];
    connect_all(&mut nodes);
    for node in &mut nodes {
        node.until("copies everywhere", has_all_copies);
    }
    let door = nodes[0].door();
    for n in 0..100 {
        assert_eq!(follow(door, &format!("SET {} {n}", key(n))), "+OK\r\n");
    }
    nodes.into_iter().for_each(Node::stop);
    // Other numbers of workers than before.
    let mut nodes = vec![open(&meeting, 0, 1), open(&meeting, 1, 3)];
    connect_all(&mut nodes);
    let door = nodes[1].door();
    for n in 0..100 {
        let text = n.to_string();
        let reply = format!("${}\r\n{text}\r\n", text.len());
        assert_eq!(follow(door, &format!("GET {}", key(n))), reply);
    }
    for node in &mut nodes {
        node.until("copies everywhere again", has_all_copies);
    }
}
