//! Three nodes of one worker each, whose messages arrive at once or not at all.

use super::{Outbox, Replicas};
use crate::batch::Batch;
use crate::testing::All;
use rufous_base::{Now, WorkerId};
use rufous_datatype::replicated::Writer;
use rufous_store::keyspace::{Keyspace, Keyspaces, Regime};
use rufous_store::placement::Placement;
use rufous_store::shard::{ExpirySetting, NewValue, Shard};
use std::collections::BTreeSet;
use std::sync::Arc;

struct Node {
    shard: Shard,
    replicas: Replicas,
    placement: Placement,
}

fn node(number: u16) -> Node {
    let keyspace = |name: &str, level: &str, cut| Keyspace {
        regime: Regime::Lattice,
        threads: 0,
        level: level.parse().expect("a level"),
        cut,
        ..Keyspace::new(name, name.as_bytes())
    };
    let table = [
        keyspace("free", "eventual", false),
        keyspace("order", "pram", false),
        keyspace("cut", "eventual", true),
    ];
    let table = table
        .into_iter()
        .try_fold(Keyspaces::default(), |all, one| all.with(one));
    let own = WorkerId(0);
    let mut placement = Placement::new(1).seen_by(own);
    placement.set_keyspaces(&Arc::new(table.expect("they are valid")));
    let mut shard = Shard::new(u64::from(number));
    shard.lattice_mut().set_keying(Some(Arc::new(All)));
    let mut replicas = Replicas::of_node(own, 1, number).expect("a small number");
    replicas.act_by(1, &BTreeSet::from([0, 1, 2]), 3);
    Node {
        shard,
        replicas,
        placement,
    }
}

fn at(ms: u64) -> Now {
    Now {
        mono_us: ms * 1_000,
        unix_us: 1_000_000_000 + ms * 1_000,
    }
}

impl Node {
    fn say(&mut self, ms: u64) -> Vec<Arc<[u8]>> {
        let mut out = Outbox::new();
        let none = |_: u8, _: &[u8]| false;
        let (replicas, parts) = (&mut self.replicas, (&mut self.shard, &self.placement));
        while replicas.poll(at(ms), 1, (parts.0, parts.1), &none, &mut out) {}
        out.into_iter().map(|(_, bytes)| bytes).collect()
    }

    fn hear(&mut self, ms: u64, all: &[Arc<[u8]>]) {
        for bytes in all {
            let parts = (&mut self.shard, &self.placement);
            let done = self.replicas.receive(at(ms), parts, Arc::clone(bytes));
            assert!(done.is_ok());
        }
    }

    fn set(&mut self, ms: u64, key: &[u8]) {
        let stamp = self.replicas.stamp(at(ms));
        self.shard.begin_lattice(Writer { stamp });
        let name = self.shard.key(key);
        let value = NewValue::Copy(b"value");
        self.shard.set(0, name, value, ExpirySetting::Clear, at(ms));
        let ended = self.shard.end_lattice().expect("it has begun");
        self.replicas.observe(ended.next);
        self.replicas.wrote(at(ms), self.shard.changeset());
    }

    fn has(&mut self, ms: u64, key: &[u8]) -> bool {
        let name = self.shard.key(key);
        self.shard.get(0, name, at(ms)).ok().flatten().is_some()
    }
}

/// All have streams to all others, with a report in each.
fn three() -> [Node; 3] {
    let mut nodes = [0, 1, 2].map(node);
    for from in 0..3 {
        let first = nodes[from].replicas.first_message(&nodes[from].shard, 1);
        nodes[from].replicas.start();
        let mut all = vec![first];
        all.extend(nodes[from].say(1));
        for to in (0..3).filter(|to| *to != from) {
            nodes[to].hear(1, &all);
        }
    }
    nodes
}

#[test]
fn a_sender_that_is_missing_holds_back_keyspaces_with_cuts_alone() {
    let [mut away, mut sender, mut node] = three();
    away.set(2, b"cut-first");
    let told = away.say(10);
    sender.hear(10, &told);
    assert!(sender.has(10, b"cut-first"));
    for key in ["cut-second", "free"] {
        sender.set(11, key.as_bytes());
    }
    node.hear(20, &sender.say(20));
    assert!(
        !node.has(20, b"cut-second"),
        "it depends on what is missing"
    );
    assert!(node.has(20, b"free"));
    let held = node.replicas.figures().held_back;
    assert_eq!(held, 2, "changes, and the report behind them");
    sender.set(21, b"free-later");
    node.hear(30, &sender.say(30));
    assert!(node.has(30, b"free-later"));
    assert!(!node.has(30, b"cut-second"));
    let least = node.replicas.least();
    node.hear(40, &told);
    assert!(node.has(40, b"cut-first") && node.has(40, b"cut-second"));
    assert_eq!(node.replicas.figures().held_back, 0);
    assert!(node.replicas.least() > least, "the reports are heard");
}

#[test]
fn changes_of_an_epoch_with_an_order_are_applied_together() {
    let [_, mut sender, mut node] = three();
    sender.set(2, b"order-first");
    sender.set(2, b"free-first");
    let told = sender.say(10);
    let (report, changes) = told.split_last().expect("a report");
    node.hear(10, changes);
    assert!(node.has(10, b"free-first") && !node.has(10, b"order-first"));
    node.hear(10, std::slice::from_ref(report));
    assert!(node.has(10, b"order-first"));
    assert_eq!(node.replicas.figures().held_back, 0);
}

#[test]
fn what_a_node_had_sent_that_is_away_is_sent_on_by_others() {
    for is_large in [false, true] {
        let [mut away, mut sender, mut node] = three();
        for epoch in 0..3 {
            away.set(2, format!("cut-{epoch}").as_bytes());
            // More than a message has.
            for n in 0..if is_large { 3_000 } else { 0 } {
                away.set(2, format!("cut-{epoch}-more-of-an-epoch-{n}").as_bytes());
            }
            sender.hear(10 + epoch, &away.say(10 + epoch));
        }
        // A report without changes: what others write depends on that, too.
        away.replicas.start();
        sender.hear(14, &away.say(14));
        sender.set(15, b"cut-after");
        node.hear(20, &sender.say(20));
        assert!(!node.has(20, b"cut-after"));
        let relayed = sender.replicas.relay(0);
        assert!(relayed.len() > if is_large { 6 } else { 3 });
        let (last, first) = relayed.split_last().expect("some");
        node.hear(30, first);
        node.hear(30, std::slice::from_ref(last));
        assert!(!node.has(30, b"cut-0"), "more may follow");
        node.hear(31, &sender.say(31));
        for key in ["cut-0", "cut-1", "cut-2", "cut-after"] {
            assert!(node.has(31, key.as_bytes()), "{key}");
        }
        let figures = node.replicas.figures();
        assert_eq!((figures.held_back, figures.relayed_epochs), (0, 4));
        // It may come from several, and from the node itself when it is back.
        node.hear(32, &relayed);
        sender.replicas.start();
        node.hear(32, &sender.say(32));
        assert_eq!(node.replicas.figures().relayed_epochs, 4);
        away.set(33, b"cut-back");
        node.hear(40, &away.say(40));
        assert!(node.has(40, b"cut-back"));
    }
}

#[test]
fn what_is_sent_on_waits_for_what_it_depends_on() {
    let [mut first, mut away, mut sender] = three();
    let mut node = node(3);
    for other in [&mut first, &mut away, &mut sender, &mut node] {
        other.replicas.act_by(2, &BTreeSet::from([0, 1, 2, 3]), 4);
    }
    for other in [&mut first, &mut away, &mut sender] {
        let mut all = vec![other.replicas.first_message(&other.shard, 1)];
        other.replicas.start();
        all.extend(other.say(2));
        node.hear(2, &all);
    }
    first.set(3, b"cut-first");
    let told = first.say(10);
    away.hear(10, &told);
    sender.hear(10, &told);
    away.set(11, b"cut-second");
    sender.hear(20, &away.say(20));
    assert!(sender.has(20, b"cut-second"));
    node.hear(21, &sender.replicas.relay(1));
    node.hear(30, &sender.say(30));
    assert!(!node.has(30, b"cut-second"));
    node.hear(31, &told);
    assert!(node.has(31, b"cut-first") && node.has(31, b"cut-second"));
}

/// Epochs without changes with cuts are not sent on, but what two workers of a node had sent depends on each other's.
#[test]
fn what_depends_on_epochs_without_changes_is_applied() {
    let [mut first, mut second, mut sender] = three();
    let mut node = node(3);
    for other in [&mut first, &mut second, &mut sender, &mut node] {
        other.replicas.act_by(2, &BTreeSet::from([0, 1, 2, 3]), 4);
    }
    for other in [&mut first, &mut second, &mut sender] {
        let mut all = vec![other.replicas.first_message(&other.shard, 1)];
        other.replicas.start();
        all.extend(other.say(2));
        node.hear(2, &all);
    }
    first.set(3, b"cut-first");
    let told = first.say(10);
    second.hear(10, &told);
    sender.hear(10, &told);
    first.replicas.start();
    let told = first.say(12);
    second.hear(12, &told);
    sender.hear(12, &told);
    second.replicas.start();
    let told = second.say(13);
    first.hear(13, &told);
    sender.hear(13, &told);
    first.set(14, b"cut-second");
    second.set(14, b"cut-third");
    sender.hear(20, &first.say(20));
    sender.hear(21, &second.say(21));
    for away in [0, 1] {
        node.hear(30, &sender.replicas.relay(away));
    }
    node.hear(31, &sender.say(31));
    for key in ["cut-first", "cut-second", "cut-third"] {
        assert!(node.has(31, key.as_bytes()), "{key}");
    }
}

/// A node that was told of an epoch by another one does not say that there was none.
#[test]
fn what_was_sent_on_by_others_is_not_passed_over() {
    let [mut away, mut first, mut second] = three();
    away.set(2, b"cut-known");
    let told = away.say(10);
    first.hear(10, &told);
    second.hear(10, &told);
    away.set(11, b"cut-late");
    first.hear(20, &away.say(20));
    second.hear(21, &first.replicas.relay(0));
    second.hear(22, &first.say(22));
    assert!(second.has(22, b"cut-late"));
    let all = second.replicas.relay(0);
    let of: Vec<_> = all
        .iter()
        .filter_map(|bytes| Batch::decode(bytes).expect("a message").relayed())
        .collect();
    assert_eq!(of.len(), 1, "the one that it has received itself");
    assert!(of[0].date < away.replicas.latest());
}

#[test]
fn epochs_that_wait_are_kept_one_by_one() {
    let [mut away, mut sender, mut node] = three();
    away.set(2, b"cut-first");
    let told = away.say(10);
    sender.hear(10, &told);
    let mut waits = Vec::new();
    for epoch in 0..3 {
        sender.set(11 + epoch * 10, format!("cut-{epoch}").as_bytes());
        waits.extend(sender.say(20 + epoch * 10));
    }
    node.hear(50, &waits);
    assert!(!node.has(50, b"cut-0"));
    node.hear(51, &told);
    let of = node.replicas.relay(1).into_iter();
    let of = of.filter_map(|bytes| Batch::decode(&bytes).expect("a message").relayed());
    let dates: BTreeSet<u64> = of.map(|of| of.date).collect();
    assert_eq!(dates.len(), 3, "each by its own date");
}

#[test]
fn what_all_have_is_not_sent_on() {
    let mut nodes = three();
    nodes[0].set(2, b"cut-first");
    for ms in 10..20 {
        for from in 0..3 {
            nodes[from].replicas.start();
            let all = nodes[from].say(ms);
            for to in (0..3).filter(|to| *to != from) {
                nodes[to].hear(ms, &all);
            }
        }
    }
    let dates = |node: &mut Node| {
        let all = node.replicas.relay(0).into_iter();
        let all = all.filter_map(|bytes| Batch::decode(&bytes).expect("a message").relayed());
        all.map(|of| of.date).collect::<Vec<u64>>()
    };
    let before = nodes[0].replicas.latest();
    assert!(
        dates(&mut nodes[1]).len() <= 1,
        "but that there was nothing more"
    );
    nodes[0].set(21, b"cut-second");
    let told = nodes[0].say(30);
    nodes[1].hear(30, &told);
    let dates = dates(&mut nodes[1]);
    assert!(dates.len() == 1 && dates[0] > before, "one has it");
}

/// Others send on changes with cuts alone: what a session has seen of other keyspaces is not here by that.
#[test]
fn a_session_waits_for_what_others_do_not_send_on() {
    let [mut away, mut sender, mut node] = three();
    away.set(2, b"cut-first");
    away.set(2, b"free-first");
    let told = away.say(10);
    sender.hear(10, &told);
    let is_up = |_| true;
    let changes = sender.shard.changeset();
    let seen = sender.replicas.seen(changes, &is_up).expect("it is known");
    node.hear(20, &sender.replicas.relay(0));
    node.hear(20, &sender.say(20));
    assert!(node.has(20, b"cut-first") && !node.has(20, b"free-first"));
    assert_eq!(
        node.replicas.lacks(&seen, &node.placement),
        [away.replicas.replica()]
    );
    node.hear(30, &told);
    assert!(node.has(30, b"free-first"));
    assert!(node.replicas.lacks(&seen, &node.placement).is_empty());
}
