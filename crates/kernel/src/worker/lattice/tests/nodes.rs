//! Two nodes of one worker each.

use super::super::{Awaited, Past, Unserved};
use super::{Host, at, hosts};
use crate::multi::NodeAction;
use crate::replicate::gossip::{Peer, Sent};
use crate::shard::NO_NODE;
use rufous_base::Now;
use rufous_base::limits::{GOSSIP_AWAY_US, GOSSIP_SILENT_US};
use rufous_mapping::{Mapping, Member, NodeId, NodeNo};

fn mapping(nodes: u16) -> Mapping {
    let member = |no: u16| Member {
        id: NodeId([no as u8; 20]),
        incarnation: 1,
        peer: String::new(),
        plain: String::new(),
        cluster: String::new(),
        zone: String::new(),
        weight: 1,
        workers: 1,
        drains: false,
        folder: Default::default(),
    };
    Mapping {
        epoch: 1,
        members: (0..nodes).map(|no| (NodeNo(no), member(no))).collect(),
        next: nodes,
        ..Mapping::new(1)
    }
}

fn node() -> Host {
    node_with(Past::Unknown)
}

fn node_with(past: Past) -> Host {
    let mut host = hosts(1).remove(0);
    host.lattices.on_join(past);
    let table = host.lattices.table().clone();
    host.adopt(&table);
    host.lattices.share();
    host
}

fn join(host: &mut Host, own: u16) {
    let mapping = mapping(2);
    host.with(|lattices, store, _| lattices.on_mapping(at(0), (&mapping, NodeNo(own)), store));
    host.lattices.on_peer_up(NodeNo(1 - own));
}

fn nodes() -> [Host; 2] {
    let mut nodes = [node(), node()];
    join(&mut nodes[0], 0);
    join(&mut nodes[1], 1);
    nodes
}

/// The messages that it sends at this time.
fn say(host: &mut Host, now: Now) -> Vec<Sent> {
    let mut all = Vec::new();
    for _ in 0..1000 {
        if host.wake_us().is_none_or(|at| at > now.mono_us) {
            return all;
        }
        let calls = host.turn(now);
        assert!(calls.is_empty(), "{calls:?}");
        all.append(&mut host.lattices.take_gossip());
    }
    panic!("it always has something to send");
}

fn hear(host: &mut Host, now: Now, from: u16, sent: &Sent) {
    let bytes = sent.peer.encode();
    let peer = host.lattices.read_peer((NodeNo(from), 0), &bytes);
    let peer = peer.expect("the same table").expect("it has a number");
    let done = host.with(|lattices, store, out| lattices.on_peer(now, peer, store, out));
    assert_eq!(done, Ok(()));
}

/// All send in turn; messages for which `lost` is true do not arrive.
fn exchange(nodes: &mut [Host; 2], ms: std::ops::Range<u64>, lost: impl Fn(&Sent) -> bool) {
    for now in ms.map(at) {
        for from in [0, 1] {
            for sent in say(&mut nodes[from], now) {
                if !lost(&sent) {
                    hear(&mut nodes[1 - from], now, from as u16, &sent);
                }
            }
        }
    }
}

#[test]
fn lattice_keys_are_served_once_the_other_node_has_sent_its_state() {
    let mut nodes = nodes();
    exchange(&mut nodes, 1..400, |sent| sent.node == 0);
    assert!(nodes[0].lattices.awaits_nodes(), "it has heard nothing");
    exchange(&mut nodes, 400..2_000, |_| false);
    assert!(nodes.iter().all(|node| !node.lattices.awaits_nodes()));
    assert_eq!(nodes[0].shard.marks().node(), Some(0));
}

/// Begins as node 0 of two; the other one is never there.
fn alone(past: Past) -> Host {
    let mut node = node_with(past);
    if past == Past::Whole {
        // It has served before.
        node.shard.set_node(0);
    }
    let mapping = mapping(2);
    node.with(|lattices, store, _| lattices.on_mapping(at(0), (&mapping, NodeNo(0)), store));
    node
}

const AWAY_MS: u64 = GOSSIP_AWAY_US / 1_000;

#[test]
fn a_start_does_not_wait_for_a_node_that_is_away_if_its_files_are_whole() {
    let mut node = alone(Past::Whole);
    (1..AWAY_MS).for_each(|ms| drop(say(&mut node, at(ms))));
    assert!(node.lattices.awaits_nodes(), "it may still come");
    let awaits = Unserved::Awaits {
        up: vec![],
        away: vec![1],
        awaited: Awaited::ForAWhile,
    };
    assert_eq!(node.lattices.unserved(), Some(awaits));
    (AWAY_MS..AWAY_MS + 10).for_each(|ms| drop(say(&mut node, at(ms))));
    assert!(!node.lattices.awaits_nodes());
    assert_eq!(node.lattices.unserved(), None);
    let figures = node.lattices.node_figures().expect("of a cluster");
    assert_eq!((figures.serving, figures.excused), (1, 1));
}

#[test]
fn a_start_waits_for_every_node_if_its_files_may_lack_something() {
    // One that is new has nothing to serve, and reaches none that has.
    for past in [Past::Unknown, Past::New] {
        let mut node = alone(past);
        let end = 10 * GOSSIP_SILENT_US / 1_000;
        (1..end)
            .step_by(500)
            .for_each(|ms| drop(say(&mut node, at(ms))));
        assert!(node.lattices.awaits_nodes());
        let figures = node.lattices.node_figures().expect("of a cluster");
        let of = (figures.serving, figures.waiting, figures.excused);
        assert_eq!(of, (0, 1, 0));
        // The other one is dropped from the mapping: nothing is left to wait for.
        let mut one = mapping(1);
        (one.epoch, one.next) = (2, 2);
        node.with(|lattices, store, _| lattices.on_mapping(at(end), (&one, NodeNo(0)), store));
        (end..end + 10).for_each(|ms| drop(say(&mut node, at(ms))));
        assert!(!node.lattices.awaits_nodes());
        assert_eq!(node.shard.marks().node(), Some(0), "its files are a node's");
    }
}

#[test]
fn a_new_node_serves_with_the_state_of_one_that_serves() {
    let mut nodes = [alone(Past::Whole), node_with(Past::New)];
    (1..AWAY_MS + 10).for_each(|ms| drop(say(&mut nodes[0], at(ms))));
    let start = AWAY_MS + 10;
    nodes[0].set(at(start), b"k", b"v");
    // A third one is a member, and never there.
    let mut three = mapping(3);
    three.epoch = 2;
    for (host, no) in nodes.iter_mut().zip([0, 1].map(NodeNo)) {
        host.with(|lattices, store, _| lattices.on_mapping(at(start), (&three, no), store));
        host.lattices.on_peer_up(NodeNo(1 - no.0));
    }
    let late = start + 2 * AWAY_MS;
    exchange(&mut nodes, start + 1..late, |_| false);
    assert!(
        nodes[1].lattices.awaits_nodes(),
        "the first may be new, too"
    );
    nodes[1].lattices.on_serving(&[NodeNo(0)].into());
    exchange(&mut nodes, late..late + 200, |_| false);
    assert!(!nodes[1].lattices.awaits_nodes());
    assert_eq!(nodes[1].get(b"k").as_deref(), Some(&b"v"[..]));
}

#[test]
fn a_node_that_comes_back_later_gets_what_was_written_without_it_and_sends_its_own() {
    let mut nodes = [alone(Past::Whole), node_with(Past::New)];
    (1..AWAY_MS + 10).for_each(|ms| drop(say(&mut nodes[0], at(ms))));
    nodes[0].set(at(AWAY_MS + 10), b"k", b"v");
    nodes[0].lattices.on_peer_up(NodeNo(1));
    join(&mut nodes[1], 1);
    exchange(&mut nodes, AWAY_MS + 11..AWAY_MS + 2_000, |_| false);
    assert!(!nodes[1].lattices.awaits_nodes());
    assert_eq!(nodes[1].get(b"k").as_deref(), Some(&b"v"[..]));
    nodes[1].set(at(AWAY_MS + 2_000), b"k", b"w");
    exchange(&mut nodes, AWAY_MS + 2_000..AWAY_MS + 2_400, |_| false);
    assert_eq!(nodes[0].get(b"k").as_deref(), Some(&b"w"[..]));
}

/// Node 0 writes under the number that a node without a cluster has, and keeps the replicas that it began with.
#[test]
fn nodes_that_have_forgotten_removals_serve_after_a_start_although_nothing_is_written() {
    let mut nodes = nodes();
    exchange(&mut nodes, 1..1_000, |_| false);
    for node in &mut nodes {
        node.set(at(1_000), b"k", b"v");
        node.lattices.begin_writes(at(1_000), &mut node.shard);
        let key = node.shard.key(b"k");
        assert!(node.shard.remove(0, key, at(1_000)));
        let refused = node.lattices.end_writes(at(1_000), &mut node.shard);
        assert_eq!(refused, None);
    }
    exchange(&mut nodes, 1_000..3_000, |_| false);
    let forgotten = |node: &Host| node.shard.horizons().forgotten() > 0;
    assert!(nodes.iter().all(forgotten), "the removals are forgotten");
    nodes = nodes.map(|before| {
        let mut node = node_with(Past::Whole);
        (node.shard, node.placement) = (before.shard, before.placement);
        node
    });
    join(&mut nodes[0], 0);
    join(&mut nodes[1], 1);
    exchange(&mut nodes, 4_000..6_000, |_| false);
    let waits = nodes.each_ref().map(|node| node.lattices.unserved());
    assert_eq!(waits, [None, None]);
}

#[test]
fn a_start_says_which_nodes_it_waits_for_until_they_are_removed() {
    let mut node = node();
    assert_eq!(node.lattices.unserved(), Some(Unserved::NoMember));
    let two = mapping(2);
    node.with(|lattices, store, _| lattices.on_mapping(at(0), (&two, NodeNo(0)), store));
    (1..400).for_each(|ms| drop(say(&mut node, at(ms))));
    let awaits = |up: &[u16], away: &[u16]| {
        Some(Unserved::Awaits {
            up: up.to_vec(),
            away: away.to_vec(),
            awaited: Awaited::Always,
        })
    };
    assert_eq!(node.lattices.unserved(), awaits(&[], &[1]));
    let figures = node.lattices.node_figures().expect("of a cluster");
    assert_eq!((figures.serving, figures.waiting), (0, 1));
    node.lattices.on_peer_up(NodeNo(1));
    assert_eq!(node.lattices.unserved(), awaits(&[1], &[]));
    node.lattices.on_peer_down(NodeNo(1));
    // The other one is removed from the mapping: no node is left to wait for.
    let mut one = mapping(1);
    (one.epoch, one.next) = (2, 2);
    node.with(|lattices, store, _| lattices.on_mapping(at(400), (&one, NodeNo(0)), store));
    (400..410).for_each(|ms| drop(say(&mut node, at(ms))));
    assert!(!node.lattices.awaits_nodes());
    assert_eq!(node.lattices.unserved(), None);
    let figures = node.lattices.node_figures().expect("of a cluster");
    assert_eq!((figures.serving, figures.waiting), (1, 0));
}

#[test]
fn an_answer_of_the_other_node_acknowledges_what_is_kept() {
    let mut nodes = nodes();
    exchange(&mut nodes, 1..2_000, |_| false);
    nodes[0].set(at(2_000), b"k", b"v");
    let kept = |nodes: &[Host; 2]| {
        let figures = nodes[0].lattices.node_figures().expect("there are nodes");
        figures.gossip.kept_bytes
    };
    let is_answer = |sent: &Sent| matches!(sent.peer, Peer::Taken { .. });
    exchange(&mut nodes, 2_000..2_200, is_answer);
    assert_eq!(nodes[1].get(b"k").as_deref(), Some(&b"v"[..]));
    assert!(kept(&nodes) > 0, "nothing says that it arrived");
    // A session that begins again repeats what was not acknowledged.
    for no in [0, 1] {
        nodes[no].lattices.on_peer_down(NodeNo(1 - no as u16));
        nodes[no].lattices.on_peer_up(NodeNo(1 - no as u16));
    }
    exchange(&mut nodes, 2_200..4_000, |_| false);
    assert_eq!(kept(&nodes), 0);
}

#[test]
fn messages_for_other_nodes_wait_for_the_log() {
    let mut nodes = nodes();
    exchange(&mut nodes, 1..2_000, |_| false);
    let [node, _] = &mut nodes;
    node.set(at(2_000), b"k", b"v");
    node.position = 1;
    for (logged, sends) in [(0, false), (1, true)] {
        node.logged = logged;
        let mut sent = 0;
        for ms in 2_000..2_300 {
            node.turn(at(ms));
            let gossip = node.lattices.take_gossip();
            let is_data = |sent: &&Sent| matches!(sent.peer, Peer::Piece { .. });
            sent += gossip.iter().filter(is_data).count();
        }
        assert_eq!(sent > 0, sends);
    }
}

#[test]
fn messages_for_a_number_wait_until_it_is_adopted() {
    let mut node = node();
    assert!(node.lattices.is_named() || node.lattices.awaits_nodes());
    for (number, serves) in [(1, false), (0, true)] {
        node.with(|lattices, store, _| lattices.on_has_heard(number, store));
        assert!(node.lattices.awaits_nodes(), "it has no number");
        join(&mut node, 0);
        assert_eq!(!node.lattices.awaits_nodes(), serves, "node {number}");
        node.lattices.on_join(Past::Unknown);
        node.lattices.share();
    }
}

#[test]
fn nodes_with_other_keyspaces_get_no_session() {
    let node = node();
    let hello = Peer::Hello {
        stream: 0,
        next: 0,
        table: node.lattices.table().sum() + 1,
    };
    let from = (NodeNo(1), 0);
    assert!(node.lattices.read_peer(from, &hello.encode()).is_err());
    assert!(node.lattices.read_peer(from, b"?").is_err());
}

#[test]
fn databases_that_other_nodes_share_are_not_flushed() {
    let mut node = node();
    let refuses = |node: &Host| node.lattices.refuses_action(NodeAction::FlushAll);
    assert!(refuses(&node).is_some(), "others may have the same keys");
    let alone = mapping(1);
    node.with(|lattices, store, _| lattices.on_mapping(at(0), (&alone, NodeNo(0)), store));
    assert!(refuses(&node).is_none());
    let swap = NodeAction::SwapDb(0, 1);
    assert!(node.lattices.refuses_action(swap).is_some());
}

/// What it was told before may be of nodes that forget it: a part of what they know is worse than
/// nothing.
#[test]
fn what_a_node_had_before_it_first_served_is_dropped_at_a_start() {
    for (before, is_kept) in [(NO_NODE, false), (7, false), (0, true)] {
        let mut node = node();
        node.set(at(1), b"k", b"told");
        assert!(node.get(b"k").is_some());
        node.shard.set_node(before);
        join(&mut node, 0);
        assert_eq!(node.get(b"k").is_some(), is_kept, "was node {before}");
    }
}
