//! Streams of two nodes of one worker each.

mod held;
mod large;

use super::{Differ, Gossip, Limits, Peer, Sent};
use crate::replicas::{Replicas, To};
use crate::testing::All;
use rufous_base::{Now, WorkerId};
use rufous_datatype::replicated::Writer;
use rufous_store::keyspace::{Keyspace, Keyspaces, Regime};
use rufous_store::placement::Placement;
use rufous_store::shard::{ExpirySetting, NewValue, Shard, told};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) struct Node {
    number: u16,
    shard: Shard,
    pub(super) replicas: Replicas,
    pub(super) gossip: Gossip,
    placement: Placement,
}

const LIMITS: Limits = Limits {
    kept_bytes: 4_000,
    flying_bytes: 500,
    compare_us: 0,
};

pub(super) fn node(number: u16) -> Node {
    let keyspace = Keyspace {
        regime: Regime::Lattice,
        threads: 0,
        ..Keyspace::new("all", b"k")
    };
    let table = Keyspaces::default().with(keyspace).expect("it is valid");
    let own = WorkerId(0);
    let mut placement = Placement::new(1).seen_by(own);
    placement.set_keyspaces(&Arc::new(table));
    let mut shard = Shard::new(u64::from(number));
    shard.lattice_mut().set_keying(Some(Arc::new(All)));
    let mut node = Node {
        number,
        shard,
        replicas: Replicas::of_node(own, 1, number).expect("a small number"),
        gossip: Gossip::new(number, own, LIMITS),
        placement,
    };
    let nodes: BTreeSet<u16> = [0, 1].into();
    node.replicas.act_by(1, &nodes, 2);
    node.gossip.act_by(&nodes, 2);
    node
}

pub(super) fn at(ms: u64) -> Now {
    Now {
        mono_us: ms * 1_000,
        unix_us: 1_000_000_000 + ms * 1_000,
    }
}

impl Node {
    /// The messages that it has to send at this time.
    pub(super) fn say(&mut self, now: Now) -> Vec<Sent> {
        let mut more = true;
        while more {
            let mut out = Vec::new();
            let none = |_: u8, _: &[u8]| false;
            let parts = (&mut self.shard, &self.placement);
            more = self.replicas.poll(now, 1, parts, &none, &mut out);
            for (to, bytes) in out {
                let To::Nodes { is_report } = to else {
                    panic!("there is one worker");
                };
                self.gossip.tell(&bytes, is_report);
            }
            let parts = (&mut self.shard, &self.placement);
            more |= self.gossip.poll(now, parts, &mut self.replicas);
        }
        self.gossip.take_sent()
    }

    pub(super) fn hear(&mut self, now: Now, from: u16, peer: Peer) {
        let all = self.gossip.take(now, (from, 0), peer);
        self.take_all(now, all.expect("it was sent so"));
    }

    pub(super) fn take_all(&mut self, now: Now, all: Vec<Arc<[u8]>>) {
        for bytes in all {
            let parts = (&mut self.shard, &self.placement);
            assert!(self.replicas.receive(now, parts, bytes).is_ok());
        }
    }

    pub(super) fn set(&mut self, now: Now, key: &[u8], text: &[u8]) {
        let stamp = self.replicas.stamp(now);
        self.shard.begin_lattice(Writer { stamp });
        let name = self.shard.key(key);
        self.shard
            .set(0, name, NewValue::Copy(text), ExpirySetting::Clear, now);
        self.end(now);
    }

    fn remove(&mut self, now: Now, key: &[u8]) {
        let stamp = self.replicas.stamp(now);
        self.shard.begin_lattice(Writer { stamp });
        let name = self.shard.key(key);
        self.shard.remove(0, name, now);
        self.end(now);
    }

    fn end(&mut self, now: Now) {
        let ended = self.shard.end_lattice().expect("it has begun");
        self.replicas.observe(ended.next);
        self.replicas.wrote(now, self.shard.changeset());
    }

    pub(super) fn get(&mut self, now: Now, key: &[u8]) -> Option<Vec<u8>> {
        let name = self.shard.key(key);
        let value = self.shard.get(0, name, now).ok().flatten();
        value.map(|value| value.bytes().to_vec())
    }
}

fn session(nodes: &mut [Node; 2], is_up: bool) {
    for (at, node) in nodes.iter_mut().enumerate() {
        let change = [Gossip::down, Gossip::up][usize::from(is_up)];
        change(&mut node.gossip, 1 - at as u16);
    }
}

/// One sends, and its messages arrive at once.
fn speak(nodes: &mut [Node], from: usize, ms: u64, lost: impl Fn(&Peer) -> bool) {
    for sent in nodes[from].say(at(ms)) {
        let number = nodes[from].number;
        if !lost(&sent.peer) {
            nodes[usize::from(sent.node)].hear(at(ms), number, sent.peer);
        }
    }
}

/// All send in turn; messages for which `lost` is true do not arrive.
fn exchange(nodes: &mut [Node], ms: std::ops::Range<u64>, lost: impl Fn(&Peer) -> bool) {
    for ms in ms {
        for from in 0..nodes.len() {
            speak(nodes, from, ms, &lost);
        }
    }
}

#[test]
fn what_was_there_before_and_what_comes_after_is_told() {
    let mut nodes = [node(0), node(1)];
    nodes[0].set(at(1), b"k-before", b"one");
    assert!(!nodes[1].replicas.has_heard_nodes());
    session(&mut nodes, true);
    exchange(&mut nodes, 2..20, |_| false);
    nodes[1].set(at(20), b"k-after", b"two");
    exchange(&mut nodes, 20..60, |_| false);
    for node in &mut nodes {
        assert_eq!(node.get(at(60), b"k-before").as_deref(), Some(&b"one"[..]));
        assert_eq!(node.get(at(60), b"k-after").as_deref(), Some(&b"two"[..]));
        assert!(node.replicas.has_heard_nodes());
        let figures = node.gossip.figures();
        assert_eq!((figures.behind, figures.resent_pieces), (0, 0));
    }
}

/// Its clock need not be behind its earlier one: other nodes' may have advanced that.
#[test]
fn who_starts_again_may_give_a_stream_the_number_of_one_before() {
    let names = RefCell::new(Vec::new());
    let note = |peer: &Peer| {
        if let Peer::Hello { stream, .. } = peer {
            names.borrow_mut().push(*stream);
        }
        false
    };
    let mut nodes = [node(0), node(1)];
    session(&mut nodes, true);
    exchange(&mut nodes, 1..20, note);
    let first = names.take()[0];
    nodes[0] = node(0);
    session(&mut nodes, true);
    exchange(&mut nodes, 1..20, note);
    let names = names.take();
    assert!(names[0] == first && names.iter().any(|&name| name > first));
    nodes[0].set(at(20), b"k", b"one");
    exchange(&mut nodes, 20..60, |_| false);
    assert_eq!(nodes[1].get(at(60), b"k").as_deref(), Some(&b"one"[..]));
    assert_eq!(nodes[0].gossip.figures().kept_bytes, 0);
}

#[test]
fn what_a_break_has_lost_is_sent_again_and_nothing_is_compared_for_that() {
    let mut nodes = [node(0), node(1)];
    session(&mut nodes, true);
    exchange(&mut nodes, 1..20, |_| false);
    let before = nodes[0].gossip.figures().comparisons;
    nodes[0].set(at(20), b"k1", b"one");
    exchange(&mut nodes, 20..30, |_| true);
    session(&mut nodes, false);
    nodes[0].set(at(30), b"k2", b"two");
    exchange(&mut nodes, 30..40, |_| true);
    session(&mut nodes, true);
    exchange(&mut nodes, 40..80, |_| false);
    assert_eq!(nodes[1].get(at(80), b"k1").as_deref(), Some(&b"one"[..]));
    assert_eq!(nodes[1].get(at(80), b"k2").as_deref(), Some(&b"two"[..]));
    let figures = nodes[0].gossip.figures();
    assert_eq!(figures.comparisons, before);
    assert!(figures.resent_pieces > 0 && figures.overflows == 0);
}

#[test]
fn what_is_kept_is_bounded_and_what_is_given_up_is_compared() {
    let mut nodes = [node(0), node(1)];
    session(&mut nodes, true);
    exchange(&mut nodes, 1..20, |_| false);
    session(&mut nodes, false);
    for n in 0..100u64 {
        let key = format!("k{n}");
        nodes[0].set(at(20 + n), key.as_bytes(), &[b'x'; 100]);
        exchange(&mut nodes, 20 + n..21 + n, |_| true);
        assert!(nodes[0].gossip.figures().kept_bytes <= 4_000);
    }
    let figures = nodes[0].gossip.figures();
    assert_eq!((figures.overflows, figures.kept_bytes), (1, 0));
    // Meanwhile it reports to no node how far it is.
    assert_eq!(figures.behind, 1);
    session(&mut nodes, true);
    exchange(&mut nodes, 130..400, |_| false);
    for n in 0..100u64 {
        let key = format!("k{n}");
        assert!(nodes[1].get(at(400), key.as_bytes()).is_some(), "{key}");
    }
    let figures = nodes[0].gossip.figures();
    assert!(figures.repaired_slots > 50 && figures.behind == 0);
}

#[test]
fn a_node_that_is_away_is_waited_for_and_one_that_is_dropped_is_not() {
    let mut nodes = [node(0), node(1)];
    session(&mut nodes, true);
    nodes[0].set(at(1), b"k", b"one");
    exchange(&mut nodes, 1..30, |_| false);
    session(&mut nodes, false);
    nodes[0].remove(at(30), b"k");
    exchange(&mut nodes, 30..90, |_| true);
    assert_eq!(nodes[0].shard.graves_len(), 1);
    let alone: BTreeSet<u16> = [0].into();
    nodes[0].replicas.act_by(2, &alone, 2);
    nodes[0].gossip.act_by(&alone, 2);
    exchange(&mut nodes, 90..120, |_| true);
    assert_eq!(nodes[0].shard.graves_len(), 0);
    // It sends nothing any more.
    session(&mut nodes, true);
    exchange(&mut nodes, 120..150, |_| false);
    assert_eq!(nodes[0].get(at(150), b"k"), None);
}

#[test]
fn who_hears_a_stream_goes_by_what_its_sender_has_forgotten() {
    let mut nodes = [node(0), node(1)];
    let early = 77 << 12;
    nodes[0].shard.horizons_mut().forget(early);
    session(&mut nodes, true);
    // No report has arrived.
    exchange(&mut nodes, 1..20, |peer| matches!(peer, Peer::Sums { .. }));
    assert_eq!(nodes[1].replicas.least(), 0);
    assert_eq!(nodes[1].replicas.horizon(), early);
    // It sends that on, also to the node that it came from.
    assert_eq!(nodes[0].replicas.horizon(), early);
}

/// It was first sent state from before the removal, and it was not among the nodes that the removal waited for.
#[test]
fn who_joins_does_not_bring_back_what_others_have_removed() {
    let mut nodes = [node(0), node(1), node(2)];
    let meet = |nodes: &mut [Node; 3], a: usize, b: usize| {
        nodes[a].gossip.up(b as u16);
        nodes[b].gossip.up(a as u16);
    };
    let act = |node: &mut Node| {
        let all: BTreeSet<u16> = [0, 1, 2].into();
        node.replicas.act_by(2, &all, 3);
        node.gossip.act_by(&all, 3);
    };
    nodes[1].set(at(1), b"k", b"one");
    meet(&mut nodes, 0, 1);
    exchange(&mut nodes, 1..30, |_| false);
    act(&mut nodes[0]);
    act(&mut nodes[2]);
    meet(&mut nodes, 0, 2);
    exchange(&mut nodes, 30..60, |_| false);
    nodes[1].remove(at(60), b"k");
    let removed = nodes[1].replicas.latest();
    exchange(&mut nodes, 60..120, |_| false);
    assert!(
        nodes[1].replicas.horizon() >= removed,
        "it knows of no other"
    );
    assert_eq!(nodes[1].shard.graves_len(), 1);
    assert_eq!(nodes[2].get(at(120), b"k").as_deref(), Some(&b"one"[..]));
    act(&mut nodes[1]);
    meet(&mut nodes, 1, 2);
    // It sends its state before it receives the removal.
    for ms in 120..240 {
        for from in [2, 1, 0] {
            speak(&mut nodes, from, ms, |_| false);
        }
    }
    for node in &mut nodes {
        assert_eq!(node.get(at(240), b"k"), None, "at {}", node.number);
        assert_eq!(node.shard.graves_len(), 0, "at {}", node.number);
    }
}

/// Another worker of a node may receive what a dropped one had sent, after this one has already sent on to all others
/// what it had received from that node.
#[test]
fn what_comes_late_of_a_dropped_node_is_passed_on() {
    let mut nodes = [node(0), node(1), node(2)];
    nodes[0].gossip.up(1);
    nodes[1].gossip.up(0);
    exchange(&mut nodes[..2], 1..20, |_| false);
    nodes[1].set(at(20), b"k", b"one");
    let mut taken = Vec::new();
    for ms in 20..30 {
        for sent in nodes[1].say(at(ms)) {
            taken.extend(
                nodes[0]
                    .gossip
                    .take(at(ms), (1, 0), sent.peer)
                    .expect("a piece"),
            );
        }
    }
    let rest: BTreeSet<u16> = [0, 2].into();
    for at in [0, 2] {
        nodes[at].replicas.act_by(2, &rest, 3);
        nodes[at].gossip.act_by(&rest, 3);
    }
    nodes[0].gossip.up(2);
    nodes[2].gossip.up(0);
    exchange(&mut nodes, 30..60, |_| false);
    assert_eq!(nodes[0].get(at(60), b"k"), None, "it comes only now");
    for bytes in taken {
        let node = &mut nodes[0];
        let parts = (&mut node.shard, &node.placement);
        let done = node.replicas.receive(at(60), parts, bytes);
        assert!(done.is_ok());
    }
    exchange(&mut nodes, 60..90, |_| false);
    for number in [0, 2] {
        let text = nodes[number].get(at(90), b"k");
        assert_eq!(text.as_deref(), Some(&b"one"[..]), "at {number}");
    }
}

/// The node that sends it again has not forgotten it yet.
#[test]
fn a_removal_that_was_forgotten_here_does_not_come_back() {
    let mut nodes = [node(0), node(1)];
    session(&mut nodes, true);
    nodes[0].set(at(1), b"k", b"one");
    exchange(&mut nodes, 1..30, |_| false);
    nodes[0].remove(at(30), b"k");
    let name = nodes[0].shard.key(b"k").bytes.to_vec();
    let mut told = Vec::new();
    let node = &mut nodes[0];
    let key = node.shard.key(&name);
    let shown = node.shard.show_replica(0, key, at(30), &mut |tag, chunk| {
        told.push((tag, chunk.to_vec()));
    });
    assert!(shown.is_some_and(|replica| !replica.is_shown));
    exchange(&mut nodes, 30..120, |_| false);
    let shard = &mut nodes[1].shard;
    assert_eq!(shard.graves_len(), 0, "both have forgotten it");
    for (tag, chunk) in told {
        let key = shard.key(b"k");
        let changed = told::merge_again(&mut shard.at(0, key, at(120)), tag, &chunk);
        assert!(matches!(changed, Ok(false)));
    }
    assert_eq!(shard.graves_len(), 0);
}

#[test]
fn who_is_alone_waits_for_nobody_and_others_are_waited_for() {
    let mut alone = node(0);
    alone.replicas.act_by(2, &[0].into(), 2);
    assert!(alone.replicas.has_heard_nodes());
    let mut nodes = [node(0), node(1)];
    assert!(!nodes[0].replicas.has_heard_nodes());
    session(&mut nodes, true);
    exchange(&mut nodes, 1..30, |_| false);
    for node in &nodes {
        assert!(node.replicas.has_heard_nodes(), "{}", node.number);
    }
}

#[test]
fn a_large_message_goes_in_pieces() {
    let mut nodes = [node(0), node(1)];
    session(&mut nodes, true);
    exchange(&mut nodes, 1..20, |_| false);
    let large = vec![b'x'; 3 << 20];
    nodes[0].set(at(20), b"k", &large);
    exchange(&mut nodes, 20..24, |_| false);
    // It is more than what is kept, and so it is sent again.
    exchange(&mut nodes, 24..90, |_| false);
    assert_eq!(nodes[1].get(at(90), b"k"), Some(large));
}

/// The other node may not be ready, and would not learn of the streams otherwise.
#[test]
fn a_stream_that_nobody_answers_for_is_named_again() {
    let mut nodes = [node(0), node(1)];
    session(&mut nodes, true);
    nodes[0].set(at(1), b"k", b"one");
    exchange(&mut nodes, 1..20, |_| true);
    exchange(&mut nodes, 20..100, |_| false);
    assert_eq!(nodes[1].get(at(100), b"k"), None);
    assert_eq!(nodes[0].gossip.wake_us(), Some(501_000));
    exchange(&mut nodes, 501..560, |_| false);
    assert_eq!(nodes[1].get(at(560), b"k").as_deref(), Some(&b"one"[..]));
}

#[test]
fn nothing_comes_of_nodes_with_other_keyspaces() {
    let mut nodes = [node(0), node(1)];
    nodes[0].gossip.set_table(7);
    session(&mut nodes, true);
    nodes[0].set(at(1), b"k", b"one");
    exchange(&mut nodes, 1..40, |_| false);
    assert_eq!(nodes[1].get(at(40), b"k"), None);
    nodes[1].gossip.set_table(7);
    exchange(&mut nodes, 501..560, |_| false);
    assert_eq!(nodes[1].get(at(560), b"k").as_deref(), Some(&b"one"[..]));
}

#[test]
fn what_does_not_follow_is_not_taken() {
    let mut node = node(1);
    let piece = |stream, number| Peer::Piece {
        stream,
        number,
        more: false,
        bytes: [1, 2, 3].as_slice().into(),
    };
    let hello = |stream, next| Peer::Hello {
        stream,
        next,
        table: 0,
    };
    let mut take = |peer| node.gossip.take(at(1), (0, 0), peer).map(|all| all.len());
    assert_eq!(take(piece(5, 0)), Ok(0), "of no stream");
    assert_eq!(take(hello(5, 3)), Ok(0), "it begins with what is not here");
    assert_eq!(take(piece(5, 3)), Ok(0));
    assert_eq!(take(hello(6, 0)), Ok(0));
    assert_eq!(take(piece(6, 1)), Ok(0), "another is missing");
    assert!(take(piece(6, 0)).is_err(), "it is no batch");
    let sums: Arc<[u64]> = [1].as_slice().into();
    assert!(take(Peer::Sums { stream: 6, sums }).is_err());
    // A batch of another worker than the one that sends it.
    let foreign = super::super::batch::Begin::default().encode(77, 1);
    let foreign = Peer::Piece {
        stream: 7,
        number: 0,
        more: false,
        bytes: foreign,
    };
    assert_eq!(take(hello(7, 0)), Ok(0));
    assert!(take(foreign).is_err());
}

#[test]
fn slots_that_differ_are_told_as_bits() {
    let (mut own, mut theirs) = (vec![0; 16384], vec![0; 16384]);
    (own[3], theirs[16383]) = (1, 2);
    let differ = Differ::of(&own, &theirs);
    assert_eq!(differ.count(), 2);
    assert!(differ.has(3) && differ.has(16383) && !differ.has(4));
    assert_eq!(Differ::from_words(differ.words().to_vec()), Some(differ));
    assert_eq!(Differ::from_words(vec![0; 3]), None);
    assert_eq!(Differ::of(&own, &[]).count(), 16384);
}
