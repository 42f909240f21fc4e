//! Requests of clients that know the cluster, for slots that no node serves at the moment.

use super::tests::{answer_for, lease, mapping, redirected, rig, without};
use crate::cluster::PeerMessage;
use crate::front::Message;
use crate::front::testing::{Client, Rig};
use rufous_base::slot::{slot_of, worker_of_slot};
use rufous_mapping::{Mapping, NodeId, NodeNo};
use std::sync::Arc;

/// The values of keys that do not exist.
const NEITHER: &str = "*2\r\n$-1\r\n$-1\r\n";
const QUEUED: &str = "+OK\r\n+QUEUED\r\n+QUEUED\r\n";

/// A node that is the head of a slot of its second worker, and has yet to hear from the other node,
/// which has the copy. The client is at the first worker.
struct Waits {
    rig: Rig,
    mapping: Mapping,
    tag: String,
    own: NodeNo,
    other: NodeNo,
    client: Client,
}

impl Waits {
    fn new() -> Self {
        let mut rig = rig(&[1, 2], 2);
        let mapping = mapping(&[1, 2], 2);
        let [own, other] = [1, 2].map(|n| mapping.number_of(NodeId([n; 20])).expect("a member"));
        let is_its = |tag: &String| {
            let slot = slot_of(tag.as_bytes());
            mapping.chains.of(slot).head() == Some(own) && worker_of_slot(slot, 2).index() == 1
        };
        let tag = (0..).map(|n| format!("k{n}")).find(is_its);
        let client = redirected(&mut rig);
        Self {
            rig,
            tag: tag.expect("a key"),
            mapping,
            own,
            other,
            client,
        }
    }

    fn slot(&self) -> u16 {
        slot_of(self.tag.as_bytes())
    }

    fn transaction(&mut self) {
        let tag = &self.tag;
        let requests = format!("MULTI\r\nGET {{{tag}}}a\r\nGET {{{tag}}}b\r\nEXEC\r\n");
        self.rig.send_only(self.client, requests.as_bytes());
        assert_eq!(self.rig.take(self.client), QUEUED);
    }

    /// The slot is served.
    fn served(&mut self) {
        let (slot, epoch) = (self.slot(), self.mapping.epoch);
        answer_for(&mut self.rig, self.other, slot, epoch);
        lease(&mut self.rig, self.other);
    }

    fn passes(&mut self, ms: u64) -> String {
        for _ in 0..ms / 100 {
            self.rig.advance_ms(100);
        }
        self.rig.take(self.client)
    }
}

#[test]
fn a_transaction_waits_until_its_slot_is_served() {
    let mut waits = Waits::new();
    waits.transaction();
    assert_eq!(waits.passes(1_000), "");
    waits.served();
    assert_eq!(waits.passes(100), NEITHER);
}

#[test]
fn a_command_on_several_keys_waits_until_its_slot_is_served() {
    let mut waits = Waits::new();
    let request = format!("MGET {{{0}}}a {{{0}}}b", waits.tag);
    waits.rig.check_on(waits.client, &request, "");
    assert_eq!(waits.passes(1_000), "");
    waits.served();
    assert_eq!(waits.passes(100), NEITHER);
}

#[test]
fn a_transaction_goes_to_the_node_that_gets_its_slot_meanwhile() {
    let mut waits = Waits::new();
    waits.transaction();
    assert_eq!(waits.passes(500), "");
    let last = Arc::new(without(waits.own, waits.mapping.clone()));
    let tell = || Message::Peer(PeerMessage::Mapping(Arc::clone(&last)));
    waits.rig.tell_all(tell);
    let moved = format!("-MOVED {} 10.0.0.2:6379\r\n", waits.slot());
    assert_eq!(waits.passes(100), moved);
}

/// One worker waits for a slot of the other, which has nothing to wait for.
#[test]
fn a_node_that_stops_keeps_its_sessions_until_no_worker_waits() {
    let mut waits = Waits::new();
    waits.transaction();
    waits.rig.stop();
    let ends = |waits: &Waits| -> Vec<bool> {
        let links = waits.rig.fronts.iter().filter_map(|front| front.links());
        links.map(|links| links.is_stopping()).collect()
    };
    assert_eq!(ends(&waits), [false; 2]);
    waits.served();
    assert_eq!(waits.passes(100), NEITHER);
    waits.passes(100);
    assert_eq!(ends(&waits), [true; 2]);
}

#[test]
fn what_waits_in_vain_is_refused_after_five_seconds() {
    let mut waits = Waits::new();
    waits.transaction();
    assert_eq!(waits.passes(4_900), "");
    let told = waits.passes(200);
    assert!(told.starts_with("-TRYAGAIN "), "{told}");
    let request = format!("MGET {{{0}}}a {{{0}}}b", waits.tag);
    waits.rig.check_on(waits.client, &request, "");
    assert_eq!(waits.passes(4_900), "");
    let told = waits.passes(200);
    assert!(told.starts_with("-CLUSTERDOWN "), "{told}");
}
