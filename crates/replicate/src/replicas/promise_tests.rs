//! Writes of a worker that read the key here earlier.

use super::{Outbox, Replicas};
use crate::testing::All;
use rufous_base::{Now, WorkerId};
use rufous_datatype::replicated::Writer;
use rufous_store::keyspace::{Keyspace, Keyspaces, Regime};
use rufous_store::placement::Placement;
use rufous_store::shard::Shard;
use rufous_store::shard::strings;
use std::sync::Arc;

struct Node {
    replicas: Replicas,
    shard: Shard,
    placement: Placement,
}

fn node(own: u16) -> Node {
    let keyspace = Keyspace {
        regime: Regime::Lattice,
        threads: 0,
        ..Keyspace::new("all", b"k")
    };
    let table = Keyspaces::default().with(keyspace).expect("it is valid");
    let mut placement = Placement::new(2).seen_by(WorkerId(own));
    placement.set_keyspaces(&Arc::new(table));
    let mut shard = Shard::new(1);
    shard.lattice_mut().set_keying(Some(Arc::new(All)));
    Node {
        replicas: Replicas::new(WorkerId(own), 2),
        shard,
        placement,
    }
}

fn at(second: u64) -> Now {
    let us = second * 1_000_000;
    Now {
        mono_us: us,
        unix_us: us,
    }
}

/// All messages of both are sent and delivered, repeatedly.
fn exchange(nodes: &mut [Node; 2], seconds: std::ops::Range<u64>) {
    for second in seconds {
        for from in [0, 1] {
            let node = &mut nodes[from];
            let mut out = Outbox::new();
            let (shard, placement) = (&mut node.shard, &node.placement);
            let none = |_: u8, _: &[u8]| false;
            let mut more = true;
            while more {
                let both = (&mut *shard, placement);
                more = node.replicas.poll(at(second), 1, both, &none, &mut out);
            }
            for (_, bytes) in out {
                let to = &mut nodes[1 - from];
                let done = to
                    .replicas
                    .receive(at(second), (&mut to.shard, &to.placement), bytes);
                assert!(done.is_ok());
            }
        }
    }
}

fn write(node: &mut Node, now: Now, write: impl FnOnce(&mut Shard)) {
    let stamp = node.replicas.stamp(now);
    node.shard.begin_lattice(Writer { stamp });
    write(&mut node.shard);
    let ended = node.shard.end_lattice().expect("it had begun");
    assert_eq!(ended.refused, None);
    node.replicas.observe(ended.next);
    node.replicas.wrote(now, node.shard.changeset());
}

fn shown(node: &mut Node) -> Option<Vec<u8>> {
    let key = node.shard.key(b"k");
    let text = node.shard.peek(0, key, at(99)).expect("a string");
    text.map(|text| text.bytes().to_vec())
}

/// Another worker has read that there is nothing, and increments; before that arrives here, a removal arrives that it
/// did not know.
#[test]
fn a_count_that_comes_home_is_not_taken_for_one_that_knew_of_a_removal() {
    let mut nodes = [node(0), node(1)];
    write(&mut nodes[1], at(1), |shard| {
        let key = shard.key(b"k");
        assert!(strings::increment(&mut shard.at(0, key, at(1)), 5).is_some());
    });
    write(&mut nodes[1], at(2), |shard| {
        let key = shard.key(b"k");
        assert!(shard.remove(0, key, at(2)));
    });
    let [home, _] = &mut nodes;
    home.replicas.promise(at(3), 7);
    let mut copy = Shard::new(3);
    copy.lattice_mut().set_keying(Some(Arc::new(All)));
    copy.observers_mut().set_brief_journaling(true);
    let stamp = home.replicas.stamp(at(3));
    copy.begin_lattice(Writer { stamp });
    let key = copy.key(b"k");
    assert!(strings::increment(&mut copy.at(0, key, at(3)), 1).is_some());
    copy.end_lattice();
    exchange(&mut nodes, 4..12);
    let [home, _] = &mut nodes;
    home.shard.carry_out(copy.journal(), at(12));
    home.replicas.wrote(at(12), home.shard.changeset());
    home.replicas.redeem(7);
    exchange(&mut nodes, 13..30);
    let [a, b] = &mut nodes;
    assert_eq!(shown(a), shown(b));
}
