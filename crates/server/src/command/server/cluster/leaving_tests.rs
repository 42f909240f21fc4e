//! Requests on their way to a worker when their key moves to another node.

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
