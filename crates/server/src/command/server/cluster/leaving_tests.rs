//! Requests on their way to a worker, or that wait for data, when their key moves to another node.

use super::tests::{halves, mapping, without};
use crate::cluster::PeerMessage;
use crate::front::Message;
use rufous_base::slot::{slot_of, worker_of_slot};
use rufous_mapping::NodeId;
use std::sync::Arc;

#[test]
fn what_is_too_large_to_be_asked_for_elsewhere_is_said_to_be() {
    let first = mapping(&[1, 2], 1);
    let no = first.number_of(NodeId([1; 20])).expect("a member");
    let is_of_last = |key: &String| {
        let slot = slot_of(key.as_bytes());
        first.chains.of(slot).head() == Some(no) && worker_of_slot(slot, 2).index() == 1
    };
    let key = (0..).map(|n| format!("k{n}")).find(is_of_last);
    let key = key.expect("a key of this node's last worker");
    let last = Arc::new(without(no, first));
    for (mib, is_told) in [(1, false), (20, true)] {
        let (mut rig, ..) = halves();
        let client = rig.connect(0);
        let value = vec![b'v'; mib << 20];
        let mut request = Vec::new();
        rufous_resp::encode::request(&mut request, &[b"SET", key.as_bytes(), &value[..]]);
        rig.send_only(client, &request);
        // Before the worker hears of the request it hears of the mapping.
        rig.tell_all(|| Message::Peer(PeerMessage::Mapping(Arc::clone(&last))));
        let reply = rig.take(client);
        assert_eq!(reply.starts_with("-TRYAGAIN "), is_told, "{reply}");
        assert_eq!(reply.contains("limit 16776192 bytes"), is_told, "{reply}");
        assert_eq!(reply.is_empty(), !is_told, "it waits for a way: {reply}");
    }
}

#[test]
fn who_waits_for_a_slot_that_goes_is_redirected_or_waits_at_its_new_node() {
    let (mut rig, client, [here, _], _) = halves();
    let plain = rig.connect(0);
    let other = rig.connect(1);
    let wait = format!("BLPOP {here} 0");
    for client in [client, plain, other] {
        rig.check_on(client, &wait, "");
    }
    let first = mapping(&[1, 2], 1);
    let no = first.number_of(NodeId([1; 20])).expect("a member");
    let last = Arc::new(without(no, first));
    rig.tell_all(|| Message::Peer(PeerMessage::Mapping(Arc::clone(&last))));
    let slot = slot_of(here.as_bytes());
    assert_eq!(rig.take(client), format!("-MOVED {slot} 10.0.0.2:6379\r\n"));
    for client in [plain, other] {
        assert_eq!(rig.take(client), "", "it goes to the other node");
    }
    let waiting: u64 = rig
        .fronts
        .iter()
        .map(|front| front.peers.forwarding.figures().waiting)
        .sum();
    assert_eq!(waiting, 2);
    // It is still there to be unblocked, and to give up where there is no session.
    let unblock = format!(
        "CLIENT UNBLOCK {} ERROR",
        rig.fronts[1]
            .connections()
            .last()
            .map_or(0, |c| c.client_id)
    );
    rig.check_on(client, &unblock, ":1\r\n");
    assert_eq!(
        rig.take(other),
        "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"
    );
    (0..51).for_each(|_| rig.advance_ms(100));
    let reply = rig.take(plain);
    assert!(reply.starts_with("-CLUSTERDOWN "), "{reply}");
}
