//! What a command or a transaction writes is seen as a whole at every copy, however large it is.

use crate::node::{Node, connect_all, has_all_copies, settings};
use crate::plain::{connect, resp};
use crate::redirected::ask;
use rufous_coordinator::meeting::Meeting;
use rufous_server::cluster::Settings;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

const KEYS: [&str; 3] = ["{g}a", "{g}b", "{g}c"];

/// Two nodes that both have all slots.
fn start() -> Vec<Node> {
    let meeting = Meeting::default();
    let settings = || Settings {
        copies: 2,
        clients: Some(([127, 0, 0, 1], 0).into()),
        ..settings(&meeting)
    };
    let mut nodes = vec![Node::start(2, settings()), Node::start(2, settings())];
    connect_all(&mut nodes);
    for node in &mut nodes {
        node.until("copies everywhere", has_all_copies);
    }
    nodes
}

/// Runs a transaction of these commands, and waits for all of its replies.
fn transact(client: &mut TcpStream, commands: &[Vec<&str>]) {
    let mut requests = resp(&["MULTI"]);
    commands
        .iter()
        .for_each(|words| requests.extend(resp(words)));
    requests.extend(resp(&["EXEC"]));
    client.write_all(&requests).expect("sent");
    // A line for MULTI, for each command twice, and for EXEC.
    let (mut lines, mut bytes) = (0, [0; 4096]);
    while lines < 2 + 2 * commands.len() {
        let count = client.read(&mut bytes).expect("replies");
        assert!(count > 0, "the connection is closed");
        let text = String::from_utf8_lossy(&bytes[..count]);
        assert!(!text.contains('-'), "{text}");
        lines += bytes[..count].iter().filter(|byte| **byte == b'\n').count();
    }
}

#[test]
fn a_transaction_is_seen_whole_or_not_at_all_at_every_copy() {
    let nodes = start();
    let value = "v".repeat(700_000);
    let set: Vec<Vec<&str>> = KEYS.iter().map(|key| vec!["SET", key, &value]).collect();
    let delete = vec![[&["DEL"][..], &KEYS].concat()];
    let exists = format!("EXISTS {}", KEYS.join(" "));
    let doors: Vec<SocketAddr> = nodes.iter().map(Node::door).collect();
    let is_head = |at: &SocketAddr| ask(*at, "SET {g}a 1") == "+OK\r\n";
    let head = doors.iter().position(is_head).expect("a head");
    assert_eq!(ask(doors[head], "DEL {g}a"), ":1\r\n");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = doors
            .into_iter()
            .map(|at| {
                let (is_over, exists) = (&is_over, &exists);
                scope.spawn(move || {
                    let mut seen = [0_u64; 4];
                    while !is_over.load(Ordering::Relaxed) {
                        // A copy with writes that are on their way sends clients to the head.
                        if let Some(count) = ask(at, exists).strip_prefix(':') {
                            seen[count.trim().parse::<usize>().expect("a number")] += 1;
                        }
                    }
                    seen
                })
            })
            .collect();
        let mut client = connect(nodes[head].address());
        for _ in 0..150 {
            transact(&mut client, &set);
            transact(&mut client, &delete);
        }
        is_over.store(true, Ordering::Relaxed);
        for reader in readers {
            let [none, one, two, all] = reader.join().expect("it reads");
            assert_eq!((one, two), (0, 0), "of {none} times none, {all} times all");
            assert!(none + all > 0);
        }
    });
}
