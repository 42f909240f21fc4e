//! Who is refused: other clusters, nodes that are no members any more, earlier
//! starts, garbage, frames beyond all bounds, foreign certificates. Whoever they
//! are, the others are not disturbed.

use crate::fake::with_fake;
use crate::node::{Node, connect_all, number, settings};
use crate::plain::text;
use rufous_coordinator::meeting::Meeting;
use rufous_server::cluster::status::Status;
use rufous_wire::version::{NEWEST, OLDEST};
use rufous_wire::{Event, Local, Peers, Refused, Session};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Two nodes that are connected, and the first one's address.
fn pair() -> Vec<Node> {
    let meeting = Meeting::default();
    let mut nodes: Vec<Node> = (0..2).map(|_| Node::start(2, settings(&meeting))).collect();
    connect_all(&mut nodes);
    nodes
}

/// Says hello as somebody, and what comes of it.
fn enter(node: &Node, who: Local, epoch: u64) -> Option<Refused> {
    let mut stream = TcpStream::connect(node.peer_address()).expect("accepted");
    let mut session = Session::new(who, None, epoch);
    let (peers, mut events) = (Peers::default(), Vec::new());
    let mut bytes = vec![0; 65536];
    loop {
        let mut out = Vec::new();
        session.transmit(&mut out, usize::MAX);
        // Whoever was refused may find the connection closed.
        let _gone = stream.write_all(&out);
        let read = match stream.read(&mut bytes) {
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        session.receive(&bytes[..read], &peers, &mut events);
    }
    events.into_iter().find_map(|event| match event {
        Event::Closed(refused) => Some(refused),
        _ => None,
    })
}

fn stranger(cluster: &str) -> Local {
    Local {
        cluster: cluster.to_owned(),
        id: [9; 20],
        incarnation: 1,
        start: 3,
        oldest: 1,
        newest: 1,
        program: String::new(),
    }
}

/// Checks that a refusal was counted under its code, and that the session of
/// the two nodes is the same as before.
fn counted(nodes: &mut [Node], code: u32) {
    let reason = format!("{code}=1");
    nodes[0].until("it is counted", |info| {
        info["cluster_refused_reasons"]
            .split(',')
            .any(|one| one == reason)
    });
    for node in nodes {
        let info = node.info();
        assert_eq!(number(&info, "cluster_connected_nodes"), 1);
        node.has_the_same_sessions();
        node.call(&["SET", "a", "1"]);
    }
}

fn refused(code: u32, who: Local, epoch: u64) {
    let mut nodes = pair();
    let by = enter(&nodes[0], who, epoch);
    // Where both sides see it, who is first says so.
    assert_eq!(by.as_ref().map(Refused::code), Some(code), "{by:?}");
    counted(&mut nodes, code);
}

#[test]
fn a_node_of_another_cluster() {
    refused(1, stranger("fish"), 1);
}

#[test]
fn a_version_that_nobody_speaks() {
    let mut who = stranger("birds");
    (who.oldest, who.newest) = (900, 901);
    refused(2, who, 1);
}

#[test]
fn who_is_no_member_by_an_epoch_that_is_known() {
    refused(12, stranger("birds"), 1);
}

#[test]
fn who_is_none_by_an_epoch_to_come_is_to_try_again() {
    refused(16, stranger("birds"), 1000);
}

#[test]
fn a_node_with_the_id_of_this_one() {
    let mut nodes = pair();
    let by = enter(&nodes[0], nodes[0].local(), 1);
    // Our own session refuses it as well.
    assert!(by.is_some());
    counted(&mut nodes, 3);
}

#[test]
fn another_node_with_the_id_of_one_that_is_connected() {
    let mut nodes = pair();
    let mut who = nodes[1].local();
    who.start ^= 1;
    let by = enter(&nodes[0], who, 1);
    assert!(
        matches!(&by, Some(Refused::ByPeer { code: 4, .. })),
        "{by:?}"
    );
    counted(&mut nodes, 4);
}

#[test]
fn an_earlier_start_of_a_node() {
    let mut nodes = pair();
    let mut who = nodes[1].local();
    who.incarnation -= 1;
    let by = enter(&nodes[0], who, 1);
    assert!(
        matches!(&by, Some(Refused::ByPeer { code: 5, .. })),
        "{by:?}"
    );
    counted(&mut nodes, 5);
}

/// Sends bytes as they are and reads until the node has closed the connection.
fn throw(node: &Node, bytes: &[u8]) {
    let mut stream = TcpStream::connect(node.peer_address()).expect("accepted");
    let _gone = stream.write_all(bytes);
    let mut rest = Vec::new();
    let _gone = stream.read_to_end(&mut rest);
}

#[test]
fn garbage() {
    let mut nodes = pair();
    throw(&nodes[0], &[0, 0, 0, 0, 0xab, 0xcd, 0xef, 1, 0, 0, 0, 0]);
    counted(&mut nodes, 8);
}

#[test]
fn a_request_of_a_client() {
    let mut nodes = pair();
    // Read as a length it is beyond all bounds.
    throw(&nodes[0], b"*1\r\n$4\r\nPING\r\n");
    counted(&mut nodes, 9);
}

#[test]
fn a_huge_frame() {
    let mut nodes = pair();
    // It is judged by its first bytes: four of a length, and nothing else comes.
    throw(&nodes[0], &(1_u32 << 30).to_le_bytes());
    counted(&mut nodes, 9);
}

#[test]
fn who_says_nothing_is_no_client_and_disturbs_nobody() {
    let mut nodes = pair();
    let silent: Vec<TcpStream> = (0..50)
        .map(|_| TcpStream::connect(nodes[0].peer_address()).expect("accepted"))
        .collect();
    let info = nodes[0].info();
    assert_eq!(number(&info, "cluster_connected_nodes"), 1);
    // They are closed by themselves.
    for mut stream in silent {
        stream
            .set_read_timeout(Some(Duration::from_secs(120)))
            .expect("set");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("closed in order");
        assert!(!rest.is_empty(), "told why");
    }
    let info = nodes[0].info();
    assert_eq!(info["cluster_refused_reasons"], "13=50");
    nodes[0].has_the_same_sessions();
}

/// Whatever a node says that it runs, it is one field of its line, while it is there.
#[test]
fn what_a_node_says_of_its_program_is_shown_as_one_field() {
    let (mut node, mut fake) = with_fake(1);
    let mut shown = |connected: u64| {
        node.until("as many are connected", |info| {
            number(info, "cluster_connected_nodes") == connected
        });
        let text = text(node.call(&["CLUSTER", "STATUS"]));
        let mut status = Status::parse(&text).expect("a status");
        assert_eq!(status.nodes.len(), 2, "{text}");
        let last = status.nodes.pop().expect("two nodes");
        let wire = [last.wire_oldest, last.wire_newest, last.wire_used];
        (last.is_alive, last.program, wire)
    };
    fake.accept();
    let said = Some("9.8orso".to_owned());
    assert_eq!(shown(1), (true, said, [OLDEST, NEWEST, NEWEST].map(Some)));
    fake.listen_no_more();
    fake.hang_up();
    assert_eq!(shown(0), (true, None, [None; 3]));
}
