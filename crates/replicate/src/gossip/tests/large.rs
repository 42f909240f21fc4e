//! A large collection that is written to while another node receives its state.

use super::{LIMITS, Node, at, exchange, node, session};
use crate::gossip::{Gossip, Limits};
use rufous_base::WorkerId;
use rufous_datatype::replicated::Writer;
use rufous_datatype::set::{self, Set};
use std::collections::BTreeSet;

const MEMBERS: u64 = 20_000;

/// A node whose streams may keep a large collection.
fn roomy(number: u16) -> Node {
    let limits = Limits {
        kept_bytes: 4 << 20,
        flying_bytes: 16 << 10,
        ..LIMITS
    };
    let mut node = node(number);
    node.gossip = Gossip::new(number, WorkerId(0), limits);
    node.gossip.act_by(&BTreeSet::from([0, 1]), 2);
    node
}

fn add(node: &mut Node, ms: u64, members: std::ops::Range<u64>) {
    let stamp = node.replicas.stamp(at(ms));
    node.shard.begin_lattice(Writer { stamp });
    let key = node.shard.key(b"kset");
    let added = node.shard.update::<Set, _>(0, key, at(ms), |editor| {
        for member in members {
            let member = member.to_le_bytes();
            editor.apply(&set::Op::Add { member: &member });
        }
    });
    assert_eq!(added, Ok(()));
    node.end(at(ms));
}

fn members(node: &mut Node, ms: u64) -> u64 {
    let key = node.shard.key(b"kset");
    let view = node.shard.collection::<Set>(0, key, at(ms));
    let mut members = 0;
    if let Some(set) = view.expect("a set") {
        set.each(|_, _| members += 1);
    }
    members
}

#[test]
fn changes_of_a_large_collection_do_not_send_all_of_it_each_time() {
    let mut nodes = [roomy(0), roomy(1)];
    add(&mut nodes[0], 1, 0..MEMBERS);
    session(&mut nodes, true);
    exchange(&mut nodes, 2..100, |_| false);
    assert_eq!(members(&mut nodes[1], 100), MEMBERS);
    let before = nodes[0].gossip.figures().sent_bytes;
    // It starts again and has lost its state.
    session(&mut nodes, false);
    nodes[1] = roomy(1);
    session(&mut nodes, true);
    for n in 0..200 {
        add(&mut nodes[0], 100 + n, MEMBERS + n..MEMBERS + n + 1);
        exchange(&mut nodes, 100 + n..101 + n, |_| false);
    }
    exchange(&mut nodes, 300..400, |_| false);
    assert_eq!(members(&mut nodes[1], 400), MEMBERS + 200);
    let figures = nodes[0].gossip.figures();
    let sent = figures.sent_bytes - before;
    // The comparison sends the state once more than the first change does.
    assert!(sent < 4 * before, "{sent} of {before}");
    assert_eq!((figures.behind, figures.overflows), (0, 0));
}

#[test]
fn a_node_that_is_away_does_not_make_others_receive_whole_states() {
    let mut nodes = [roomy(0), roomy(1)];
    for node in &mut nodes {
        node.replicas.act_by(2, &BTreeSet::from([0, 1, 2]), 3);
        node.gossip.act_by(&BTreeSet::from([0, 1, 2]), 3);
    }
    add(&mut nodes[0], 1, 0..MEMBERS);
    session(&mut nodes, true);
    exchange(&mut nodes, 2..100, |_| false);
    let before = nodes[0].gossip.figures().sent_bytes;
    for n in 0..20 {
        add(&mut nodes[0], 100 + n, MEMBERS + n..MEMBERS + n + 1);
        exchange(&mut nodes, 100 + n..101 + n, |_| false);
    }
    assert_eq!(members(&mut nodes[1], 120), MEMBERS + 20);
    let sent = nodes[0].gossip.figures().sent_bytes - before;
    assert!(sent < before / 4, "{sent} of {before}");
}
