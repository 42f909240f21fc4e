//! Clients that know the cluster, over sockets.

use crate::node::{Node, connect_all, settings};
use rufous_coordinator::meeting::Meeting;
use rufous_server::cluster::Settings;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// What a node replies to one request in a line.
pub(crate) fn ask(at: SocketAddr, request: &str) -> String {
    try_ask(at, request).expect("connected")
}

/// Likewise; nothing where the node does not listen.
pub(crate) fn try_ask(at: SocketAddr, request: &str) -> Option<String> {
    let mut socket = TcpStream::connect(at).ok()?;
    let patience = Some(Duration::from_secs(60));
    socket.set_read_timeout(patience).expect("set");
    let request = format!("{request}\r\nQUIT\r\n");
    socket.write_all(request.as_bytes()).expect("sent");
    let mut reply = String::new();
    socket.read_to_string(&mut reply).expect("text");
    Some(reply.strip_suffix("+OK\r\n").expect("the end").to_owned())
}

/// Two nodes with ports that redirect. The first has all slots.
pub(crate) fn start() -> Vec<Node> {
    let meeting = Meeting::default();
    let settings = || Settings {
        clients: Some(([127, 0, 0, 1], 0).into()),
        ..settings(&meeting)
    };
    let mut nodes = vec![Node::start(2, settings())];
    nodes[0].until("it has all slots", |info| info["cluster_epoch"] == "1");
    nodes.push(Node::start(1, settings()));
    connect_all(&mut nodes);
    nodes
}

#[test]
fn a_client_finds_its_key_by_what_any_node_says() {
    let nodes = start();
    let doors = [nodes[0].door(), nodes[1].door()];
    for key in ["a", "b", "c"] {
        let moved = ask(doors[1], &format!("SET {key} 1"));
        let to = moved.trim_end().rsplit_once(' ').map(|(_, to)| to);
        assert!(moved.starts_with("-MOVED "), "{moved}");
        let to = to.expect("where").parse().expect("an address");
        assert_eq!(to, doors[0]);
        assert_eq!(ask(to, &format!("SET {key} 1")), "+OK\r\n");
        assert_eq!(ask(to, &format!("GET {key}")), "$1\r\n1\r\n");
    }
    for door in doors {
        let slots = ask(door, "CLUSTER SLOTS");
        let port = format!("\r\n:{}\r\n", doors[0].port());
        assert!(slots.contains(&port), "{slots}");
    }
}
