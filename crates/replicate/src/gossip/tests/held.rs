//! Three nodes with causal cuts, one of which goes away when it has told one of the others alone.

use super::{LIMITS, Node, at, exchange, node};
use crate::gossip::{Gossip, Limits};
use rufous_base::WorkerId;
use rufous_store::keyspace::{Keyspace, Keyspaces, Regime};
use std::collections::BTreeSet;
use std::sync::Arc;

fn with_cuts(number: u16) -> Node {
    let keyspace = Keyspace {
        regime: Regime::Lattice,
        threads: 0,
        cut: true,
        ..Keyspace::new("all", b"k")
    };
    let table = Keyspaces::default().with(keyspace).expect("it is valid");
    let limits = Limits {
        kept_bytes: 8 << 20,
        flying_bytes: 4 << 20,
        ..LIMITS
    };
    let mut node = node(number);
    node.placement.set_keyspaces(&Arc::new(table));
    node.gossip = Gossip::new(number, WorkerId(0), limits);
    let all: BTreeSet<u16> = [0, 1, 2].into();
    node.replicas.act_by(2, &all, 3);
    node.gossip.act_by(&all, 3);
    node
}

/// What the first one writes reaches the second one alone, and then the first one is away from both.
fn parted() -> [Node; 3] {
    let mut nodes = [0, 1, 2].map(with_cuts);
    for (at, other) in [(0, 1), (0, 2), (1, 2)] {
        nodes[at].gossip.up(other as u16);
        nodes[other].gossip.up(at as u16);
    }
    exchange(&mut nodes, 1..40, |_| false);
    nodes[2].gossip.down(0);
    nodes[0].gossip.down(2);
    nodes[0].set(at(40), b"k-first", b"one");
    exchange(&mut nodes, 40..60, |_| false);
    nodes[1].gossip.down(0);
    nodes[0].gossip.down(1);
    assert!(nodes[1].get(at(60), b"k-first").is_some());
    nodes[1].set(at(60), b"k-second", b"two");
    nodes
}

/// The other two go on.
fn go_on(nodes: &mut [Node; 3], ms: std::ops::Range<u64>) {
    for ms in ms {
        for from in [1, 2] {
            for sent in nodes[from].say(at(ms)) {
                if sent.node > 0 {
                    nodes[usize::from(sent.node)].hear(at(ms), from as u16, sent.peer);
                }
            }
        }
    }
}

#[test]
fn survivors_tell_one_another_what_a_node_had_sent_that_is_away() {
    let mut nodes = parted();
    go_on(&mut nodes, 60..100);
    let node = &mut nodes[2];
    assert_eq!(
        node.get(at(100), b"k-second"),
        None,
        "it depends on the first"
    );
    assert!(node.replicas.figures().held_back > 0);
    go_on(&mut nodes, 100..300);
    let node = &mut nodes[2];
    assert_eq!(node.get(at(300), b"k-first").as_deref(), Some(&b"one"[..]));
    assert_eq!(node.get(at(300), b"k-second").as_deref(), Some(&b"two"[..]));
    assert_eq!(node.replicas.figures().held_back, 0);
    // All are there again.
    for (at, other) in [(0, 1), (0, 2)] {
        nodes[at].gossip.up(other as u16);
        nodes[other].gossip.up(at as u16);
    }
    nodes[0].set(at(300), b"k-third", b"three");
    exchange(&mut nodes, 300..400, |_| false);
    for node in &mut nodes {
        assert_eq!(node.replicas.figures().held_back, 0);
        for key in [&b"k-first"[..], b"k-second", b"k-third"] {
            assert!(node.get(at(400), key).is_some(), "{}", node.number);
        }
    }
}

/// The one that is away from the third is still there for the second: that one sends on nothing.
#[test]
fn too_much_that_waits_is_compared() {
    let mut nodes = parted();
    nodes[1].gossip.up(0);
    let mut overflows = 0;
    for n in 0..24 {
        let from = 60 + n * 20;
        let key = format!("k-large-{n}");
        nodes[1].set(at(from), key.as_bytes(), &vec![b'x'; 1 << 20]);
        go_on(&mut nodes, from..from + 20);
        overflows = nodes[2].replicas.figures().overflows;
        if overflows > 0 {
            break;
        }
    }
    assert_eq!(overflows, 1);
    go_on(&mut nodes, 600..700);
    let node = &mut nodes[2];
    for key in [&b"k-first"[..], b"k-second", b"k-large-0"] {
        assert!(node.get(at(700), key).is_some());
    }
    assert!(nodes[1].gossip.figures().repaired_slots > 0);
}
