//! What clients that choose among the nodes of a slot are told by those with copies.

use super::tests::{lease, mapping, redirected, rig, text, without};
use crate::cluster::PeerMessage;
use crate::front::Message;
use rufous_base::slot::slot_of;
use rufous_mapping::NodeId;
use std::sync::Arc;

/// A key of which this node, which is 1, has the copy, and node 2 is the head.
fn copied() -> String {
    let mapping = mapping(&[1, 2], 2);
    let other = mapping.number_of(NodeId([2; 20]));
    let head = |key: &String| mapping.chains.of(slot_of(key.as_bytes())).head();
    let mut keys = (0..).map(|n| format!("k{n}"));
    keys.find(|key| head(key) == other).expect("a key")
}

#[test]
fn reads_wait_a_little_for_a_copy_and_are_sent_on_then() {
    let mut rig = rig(&[1, 2], 2);
    let (client, key) = (redirected(&mut rig), copied());
    let moved = format!("-MOVED {} 10.0.0.2:6379\r\n", slot_of(key.as_bytes()));
    // There is no lease, and nobody grants one.
    rig.check_on(client, &format!("GET {key}"), "");
    rig.advance_ms(50);
    assert_eq!(rig.take(client), "");
    rig.advance_ms(100);
    assert_eq!(rig.take(client), moved);
    // Writes, and what belongs to transactions, are the head's.
    for request in ["SET {} 1", "WATCH {}", "GETDEL {}"] {
        rig.check_on(client, &request.replace("{}", &key), &moved);
    }
    rig.check_on(client, "MULTI", "+OK\r\n");
    rig.check_on(client, &format!("GET {key}"), &moved);
}

#[test]
fn copies_answer_reads_with_and_without_readonly() {
    let mut rig = rig(&[1, 2], 2);
    let (client, key) = (redirected(&mut rig), copied());
    let first = mapping(&[1, 2], 2);
    let other = first.number_of(NodeId([2; 20])).expect("a member");
    // The head's word that nobody goes on without this copy comes while it waits.
    rig.check_on(client, &format!("GET {key}"), "");
    lease(&mut rig, other);
    // A turn of each worker.
    for worker in 0..rig.fronts.len() {
        let neighbour = rig.connect(worker);
        rig.check_on(neighbour, "PING", "+PONG\r\n");
    }
    assert_eq!(rig.take(client), "$-1\r\n");
    for mode in ["READONLY", "READWRITE"] {
        rig.check_on(client, mode, "+OK\r\n");
        rig.check_on(client, &format!("GET {key}"), "$-1\r\n");
    }
}

/// Clients look for the line of the node that they ask, and take nothing of what it
/// says without one.
#[test]
fn a_node_that_has_drained_names_itself() {
    let mut rig = rig(&[1, 2], 1);
    let first = mapping(&[1, 2], 1);
    let no = first.number_of(NodeId([1; 20])).expect("a member");
    let own = first.members[&no].clone();
    let cluster = rig.fronts[0].shared.cluster.clone().expect("a cluster");
    cluster.about.begin(own);
    let last = Arc::new(without(no, first));
    rig.tell_all(|| Message::Peer(PeerMessage::Mapping(Arc::clone(&last))));
    let nodes = rig.run("CLUSTER NODES");
    let lines: Vec<&str> = text(&nodes).lines().collect();
    assert_eq!(lines.len(), 2, "{nodes}");
    let (id, epoch) = ("01".repeat(20), last.epoch);
    let line = format!("{id} 10.0.0.1:6379@7000 myself,master - 0 0 {epoch} connected");
    assert_eq!(lines[1], line);
    assert_eq!(nodes.matches("myself").count(), 1);
}
