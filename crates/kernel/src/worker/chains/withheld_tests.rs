//! What depends on slots of two nodes, driven by hand: see `tests` for the rig.

use super::super::view::Needs;
use super::super::withheld::{Fate, Item};
use super::{ChainSettings, Node, Said, at, exchange, mapping, pair, settings};
use crate::batch::Batch;
use crate::worker;
use rufous_base::slot::slot_of;
use rufous_base::{Now, Until, WorkerId};
use rufous_chain::{Message, Refused};
use rufous_mapping::{Chains, Mapping, Members, NodeNo, Phase};
use std::sync::Arc;

fn item(multi: u64) -> Item {
    Item::Message(
        WorkerId(0),
        (Until::Logged, worker::Message::Committed { multi }),
    )
}

fn released(node: &mut Node) -> Vec<(u64, Fate)> {
    let released = node.host.take_released().into_iter();
    let named = released.map(|(item, fate)| match item {
        Item::Message(_, (_, worker::Message::Committed { multi })) => (multi, fate),
        other => panic!("{other:?}"),
    });
    named.collect()
}

fn awaits(node: &mut Node, key: &[u8]) -> bool {
    let journaled = node.shard.journal().len();
    node.host.awaits(&[slot_of(key)], journaled)
}

#[test]
fn a_reply_waits_for_the_writes_of_its_slot_alone() {
    let mut nodes = [Node::new(0), Node::new(1)];
    let mapping = mapping(1, &[(b"k", &[0, 1], None), (b"j", &[0, 1], None)]);
    nodes.iter_mut().for_each(|node| node.map(at(1), &mapping));
    exchange(&mut nodes, at(2));
    let [head, tail] = &mut nodes;
    assert!(!awaits(head, b"k") && !awaits(head, b"j"));

    head.set(b"k", b"1");
    assert!(awaits(head, b"k"), "its frame is open");
    head.host.withhold(&[slot_of(b"k")], item(1));
    let of_k = head.log();
    assert!(awaits(head, b"k") && !awaits(head, b"j"));
    head.set(b"j", b"1");
    head.host.withhold(&[slot_of(b"j")], item(2));
    head.host.withhold(&[slot_of(b"k"), slot_of(b"j")], item(3));
    let of_j = head.log();
    assert_eq!(released(head), []);

    // The tail has what is of `j`, and does not answer for `k`.
    of_j.into_iter()
        .for_each(|said| tail.receive(at(3), NodeNo(0), said.envelope));
    for said in tail.log() {
        head.receive(at(3), NodeNo(1), said.envelope);
    }
    assert_eq!(released(head), [(2, Fate::Acknowledged)]);
    assert!(awaits(head, b"k") && !awaits(head, b"j"));
    of_k.into_iter()
        .for_each(|said| tail.receive(at(4), NodeNo(0), said.envelope));
    for said in tail.log() {
        head.receive(at(4), NodeNo(1), said.envelope);
    }
    let all = [(1, Fate::Acknowledged), (3, Fate::Acknowledged)];
    assert_eq!(released(head), all);
    assert_eq!(head.host.figures().withheld, 0);
}

#[test]
fn what_was_read_while_another_write_was_open_leaves_with_the_frame() {
    let [mut head, _tail] = pair(&[0, 1], None);
    head.set(b"alone", b"1");
    assert!(!awaits(&mut head, b"alone"), "no other node has a copy");
    assert!(awaits(&mut head, b"k"), "the frame may concern it");
    head.host.withhold(&[slot_of(b"k")], item(1));
    assert_eq!(released(&mut head), []);
    head.end_frame();
    assert_eq!(released(&mut head), [(1, Fate::Acknowledged)]);
}

#[test]
fn the_outcome_is_unknown_when_the_slot_has_moved() {
    let [mut head, _tail] = pair(&[0, 1], None);
    head.set(b"k", b"1");
    head.host.withhold(&[slot_of(b"k")], item(1));
    head.log();
    assert_eq!(released(&mut head), []);
    head.map(at(3), &mapping(2, &[(b"k", &[1], None)]));
    assert_eq!(released(&mut head), [(1, Fate::Lost)]);
}

/// The other members go on without what is not in the log here, and replace this node.
#[test]
fn a_node_whose_log_fails_answers_only_for_slots_without_other_members() {
    let [mut head, mut tail] = pair(&[0, 1], None);
    for node in [&mut head, &mut tail] {
        let before = node.host.serves(at(3), slot_of(b"k"), Needs::Member);
        assert_eq!(before, Ok(()));
        node.host
            .on_trouble(Some("its log cannot be written".to_owned()));
        for needs in [Needs::Head, Needs::Member] {
            let now = node.host.serves(at(3), slot_of(b"k"), needs);
            assert!(now.is_err(), "{needs:?}");
        }
    }
    assert_eq!(head.serves(at(3), b"k"), Err(Refused::NotYet));
    assert_eq!(head.serves(at(3), b"alone"), Ok(()));
    let why = head.host.why_taken_not(slot_of(b"k")).expect("a reason");
    assert!(why.contains("its log cannot be written"), "{why}");
    head.host.on_trouble(None);
    assert_eq!(head.serves(at(3), b"k"), Ok(()));
}

/// The tail answers everything but writes.
fn grant_leases(head: &mut Node, tail: &mut Node, now: Now) {
    head.with(|host, store, _| host.on_tick(now, |_| true, store));
    let is_write = |said: &Said| matches!(said.envelope.message, Message::Items { .. });
    for said in head.log().into_iter().filter(|said| !is_write(said)) {
        tail.receive(now, NodeNo(0), said.envelope);
    }
    for said in tail.log() {
        head.receive(now, NodeNo(1), said.envelope);
    }
}

#[test]
fn a_slot_whose_writes_are_not_acknowledged_for_long_takes_no_more_and_says_why() {
    let mut nodes = [Node::new(0), Node::new(1)];
    let mapping = mapping(1, &[(b"k", &[0, 1], None), (b"j", &[0, 1], None)]);
    nodes.iter_mut().for_each(|node| node.map(at(1), &mapping));
    exchange(&mut nodes, at(2));
    let [head, tail] = &mut nodes;
    head.set(b"k", b"1");
    for step in 0..10 {
        let now = at(300_000 * (step + 1));
        grant_leases(head, tail, now);
        assert_eq!(head.serves(now, b"k"), Ok(()), "step {step}");
    }
    let now = at(3_600_000);
    grant_leases(head, tail, now);
    assert_eq!(head.serves(now, b"k"), Err(Refused::NotYet));
    assert_eq!(head.serves(now, b"j"), Ok(()));
    assert_eq!(head.host.figures().late, 1);
    let why = head.host.why_taken_not(slot_of(b"k")).expect("a reason");
    assert!(
        why.contains("node 1 at node-1:7000") && why.contains("does not answer"),
        "{why}"
    );
    let full = "worker 0: No space left on device".to_owned();
    head.host.on_ailing([(NodeNo(1), full.clone())].into());
    let why = head.host.why_taken_not(slot_of(b"k")).expect("a reason");
    assert!(why.contains(&full), "{why}");

    head.with(|host, store, _| host.on_peer_up(now, NodeNo(1), store));
    tail.with(|host, store, _| host.on_peer_up(now, NodeNo(0), store));
    exchange(&mut nodes, now);
    assert_eq!(nodes[0].serves(now, b"k"), Ok(()));
    assert_eq!(nodes[0].host.why_taken_not(slot_of(b"k")), None);
}

/// While the chain has yet to confirm that it has lost the node, and also when it has.
#[test]
fn a_node_that_was_lost_is_named() {
    let mut nodes = [Node::new(0), Node::new(1)];
    let before = mapping(1, &[(b"k", &[0, 1], None)]);
    nodes.iter_mut().for_each(|node| node.map(at(1), &before));
    exchange(&mut nodes, at(2));
    let [head, tail] = &mut nodes;
    head.set(b"k", b"1");
    for step in 0..12 {
        grant_leases(head, tail, at(300_000 * (step + 1)));
    }
    let lost = |epoch, phase| {
        let alone = mapping(epoch, &[(b"k", &[0], None)]);
        let chains = alone.chains.ranges().map(|(slots, chain)| {
            let mut chain = *chain;
            if slots.contains(&slot_of(b"k")) {
                chain.phase = phase;
            }
            (slots, chain)
        });
        let chains = Chains::of_ranges(chains).expect("all slots");
        Arc::new(Mapping {
            chains,
            ..(*alone).clone()
        })
    };
    let former = Members::of(&[NodeNo(1)]).expect("one");
    let why = |head: &Node| head.host.why_taken_not(slot_of(b"k"));
    assert!(why(head).is_some_and(|why| why.contains("node 1 at node-1:7000")));
    head.map(
        at(3_600_000),
        &lost(2, Phase::Confirms { former, acted: 1 }),
    );
    let told = why(head).expect("its write is not acknowledged");
    assert!(
        told.contains("CLUSTERDOWN node 1 at node-1:7000 has a copy"),
        "{told}"
    );
    let waits = head.host.why_waits(slot_of(b"k")).expect("it waits");
    assert!(
        waits.contains("node 0 at node-0:7000 has yet to confirm"),
        "{waits}"
    );
    assert_eq!(head.host.why_waits(slot_of(b"alone")), None);
}

#[test]
fn a_node_that_has_no_part_in_the_cluster_yet_lets_requests_wait() {
    let settings = ChainSettings {
        incarnation: 2,
        ..settings()
    };
    let mut node = Node::with_settings(0, settings);
    // It has the node as it was before its start.
    node.map(at(1), &mapping(1, &[(b"k", &[0, 1], None)]));
    assert_eq!(node.serves(at(2), b"k"), Err(Refused::NotYet));
    let why = node.host.why_waits(slot_of(b"k")).expect("it waits");
    assert!(why.contains("have not taken it back yet"), "{why}");
}

#[test]
fn what_waits_for_a_copy_is_bounded() {
    let mut nodes = [Node::new(0), Node::new(1)];
    let mapping = mapping(1, &[(b"k", &[0, 1], None), (b"j", &[0, 1], None)]);
    nodes.iter_mut().for_each(|node| node.map(at(1), &mapping));
    exchange(&mut nodes, at(2));
    let [head, tail] = &mut nodes;
    let mut taken = 0;
    while head.serves(at(3), b"k").is_ok() {
        head.set(b"k", &vec![b'v'; 1 << 20]);
        taken += 1;
        assert!(taken < 100, "no limit");
        for said in head.log() {
            drop(said);
        }
    }
    assert_eq!(taken, 64, "64 MiB, with names of keys");
    assert_eq!(head.serves(at(3), b"j"), Ok(()), "none of its writes wait");
    assert!(head.host.figures().unacknowledged > 64 << 20);
    head.with(|host, store, _| host.on_peer_up(at(3), NodeNo(1), store));
    tail.with(|host, store, _| host.on_peer_up(at(3), NodeNo(0), store));
    exchange(&mut nodes, at(3));
    assert_eq!(nodes[0].serves(at(3), b"k"), Ok(()));
    assert_eq!(nodes[0].host.figures().unacknowledged, 0);
}

/// So are replies to reads: each keeps a copy of what it tells.
#[test]
fn replies_that_wait_for_a_copy_are_bounded() {
    let [mut head, _tail] = pair(&[0, 1], None);
    head.set(b"k", b"1");
    head.log();
    for _ in 0..64 {
        assert_eq!(head.serves(at(3), b"k"), Ok(()));
        let mut batch = Box::<Batch>::default();
        batch.replies.bytes.resize(1 << 20, b'v');
        let replies = (Until::Logged, worker::Message::Replies(batch));
        let reply = Item::Message(WorkerId(0), replies);
        head.host.withhold(&[slot_of(b"k")], reply);
    }
    assert_eq!(head.serves(at(3), b"k"), Err(Refused::NotYet));
}
