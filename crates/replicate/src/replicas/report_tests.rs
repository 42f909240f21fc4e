//! The date of a report is in the log before the report leaves, and a start continues above it.

use super::{Outbox, Replicas, To};
use crate::batch::{Batch, Body};
use rufous_base::{Now, WorkerId};
use rufous_lattice::Stamp;
use rufous_store::effect::Effect;
use rufous_store::placement::Placement;
use rufous_store::shard::Shard;
use std::collections::BTreeSet;

const NOW: Now = Now {
    mono_us: 5,
    unix_us: 1_000_000,
};

/// The time up to which a report says that everything was sent.
fn reported(out: &Outbox) -> u64 {
    let reports = out.iter().filter_map(|(to, bytes)| {
        let is_report = matches!(to, To::Nodes { is_report: true });
        match Batch::decode(bytes).expect("a message").body {
            Body::Report(report) if is_report => Some(report.upto),
            _ => None,
        }
    });
    reports.max().expect("a report")
}

#[test]
fn a_start_continues_above_what_was_reported_before_it() {
    let own = WorkerId(0);
    let placement = Placement::new(1).seen_by(own);
    let (mut replicas, mut shard) = (Replicas::of_node(own, 1, 0).expect("small"), Shard::new(1));
    shard.observers_mut().set_journaling(true);
    let nodes = BTreeSet::from([0, 1]);
    replicas.act_by(1, &nodes, 2);
    // The clock of another node is a minute ahead, and nothing that it wrote is here.
    let ahead = Stamp {
        time: 61_000_000 << 12,
        ..Stamp::ZERO
    };
    replicas.observe(ahead);
    replicas.start();
    let mut out = Outbox::new();
    let none = |_: u8, _: &[u8]| false;
    while replicas.poll(NOW, 1, (&mut shard, &placement), &none, &mut out) {}
    shard.tell_horizon();
    let upto = reported(&out);
    assert!(upto > ahead.time);

    let log = std::mem::take(shard.journal());
    let (mut rest, mut again) = (&log[..], Shard::new(1));
    again.hold_counts(1);
    while !rest.is_empty() {
        let effect = Effect::decode(&mut rest).expect("an effect");
        again.apply(&effect).expect("it can be done again");
    }
    let held = again.take_held().expect("held");
    assert!(held.latest() >= upto, "{} {upto}", held.latest());
}

#[test]
fn a_node_alone_has_no_reports_to_log() {
    let own = WorkerId(0);
    let placement = Placement::new(1).seen_by(own);
    let (mut replicas, mut shard) = (Replicas::of_node(own, 1, 0).expect("small"), Shard::new(1));
    shard.observers_mut().set_journaling(true);
    replicas.act_by(1, &BTreeSet::from([0]), 1);
    replicas.start();
    let mut out = Outbox::new();
    let none = |_: u8, _: &[u8]| false;
    while replicas.poll(NOW, 1, (&mut shard, &placement), &none, &mut out) {}
    shard.tell_horizon();
    assert!(shard.journal().is_empty());
}

#[test]
fn a_start_needs_every_node_that_is_not_away() {
    let own = WorkerId(0);
    let placement = Placement::new(1).seen_by(own);
    let (mut replicas, mut shard) = (Replicas::of_node(own, 1, 0).expect("small"), Shard::new(1));
    replicas.act_by(1, &BTreeSet::from([0, 1, 2]), 3);
    let mut poll = |replicas: &mut Replicas| {
        let none = |_: u8, _: &[u8]| false;
        let mut out = Outbox::new();
        while replicas.poll(NOW, 1, (&mut shard, &placement), &none, &mut out) {}
    };
    replicas.excuse(BTreeSet::from([2]));
    poll(&mut replicas);
    assert!(
        !replicas.has_heard_nodes(),
        "one is there and has sent nothing"
    );
    replicas.excuse(BTreeSet::from([1, 2]));
    assert!(!replicas.has_heard_nodes(), "it has to report first");
    poll(&mut replicas);
    assert!(replicas.has_heard_nodes());
    // One is back before clients are served.
    replicas.excuse(BTreeSet::from([2]));
    assert!(!replicas.has_heard_nodes());
}
