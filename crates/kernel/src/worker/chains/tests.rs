//! Hosts of chains at two nodes of one worker each, driven by hand: the test logs their frames and
//! carries their messages.

#[path = "withheld_tests.rs"]
mod withheld_tests;

use super::view::Needs;
use super::{ChainHost, ChainSettings, Said};
use crate::durable::SlotMark;
use crate::placement::Placement;
use crate::shard::{ExpirySetting, NewValue, Shard};
use crate::worker::lattice::Past;
use crate::worker::out::{Call, Out};
use crate::worker::store::Store;
use rufous_base::slot::slot_of;
use rufous_base::{Now, WorkerId};
use rufous_chain::{Envelope, Message, Peer, Refused};
use rufous_mapping::{Chain, Chains, Mapping, Member, Members, NodeId, NodeNo};
use std::sync::Arc;

const LEASE_US: u64 = 1_000_000;

pub(in crate::worker) fn at(mono_us: u64) -> Now {
    Now {
        mono_us,
        unix_us: 1_000_000_000 + mono_us,
    }
}

pub(in crate::worker) fn settings() -> ChainSettings {
    ChainSettings {
        incarnation: 1,
        lease_us: LEASE_US,
        has_run: false,
        move_rate: 0,
        past: Past::Unknown,
    }
}

/// A mapping of nodes 0 and 1: the slots of these keys have these chains since this epoch, and all
/// others node 0 alone.
pub(in crate::worker) fn mapping(
    epoch: u64,
    chains: &[(&[u8], &[u16], Option<u16>)],
) -> Arc<Mapping> {
    let member = |no: u16| Member {
        id: NodeId([no as u8; 20]),
        incarnation: 1,
        peer: String::new(),
        plain: String::new(),
        cluster: format!("node-{no}:7000"),
        zone: String::new(),
        weight: 1,
        workers: 1,
        drains: false,
        folder: Default::default(),
    };
    let chain = |members: &[u16], learner: Option<u16>, since| {
        let members: Vec<NodeNo> = members.iter().map(|no| NodeNo(*no)).collect();
        Chain {
            members: Members::of(&members).expect("few"),
            learner: learner.map(NodeNo),
            born: 1,
            since,
            lost: 0,
            phase: Default::default(),
        }
    };
    let ranges = (0..16384).map(|slot| {
        let mut chains = chains.iter();
        let named = chains.find(|(key, ..)| slot_of(key) == slot);
        let chain = match named {
            Some((_, members, learner)) => chain(members, *learner, epoch),
            None => chain(&[0], None, 1),
        };
        (slot..slot + 1, chain)
    });
    Arc::new(Mapping {
        epoch,
        members: (0..2).map(|no| (NodeNo(no), member(no))).collect(),
        next: 2,
        chains: Chains::of_ranges(ranges).expect("all slots"),
        ..Mapping::new(2)
    })
}

struct Node {
    no: NodeNo,
    host: ChainHost,
    shard: Shard,
    placement: Placement,
    out: Out,
    /// Frames appended to the log, and committed in it.
    frames: u64,
    logged: u64,
}

impl Node {
    fn new(no: u16) -> Self {
        Self::with_settings(no, settings())
    }

    fn with_settings(no: u16, settings: ChainSettings) -> Self {
        let mut shard = Shard::new(7);
        shard.invite_all();
        Self {
            no: NodeNo(no),
            host: ChainHost::new(settings, WorkerId(0), 1),
            shard,
            placement: Placement::new(1).seen_by(WorkerId(0)),
            out: Out::default(),
            frames: 0,
            logged: 0,
        }
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut ChainHost, &mut Store<'_>, &mut Out) -> R) -> R {
        let mut store = Store {
            id: WorkerId(0),
            shard: &mut self.shard,
            placement: &self.placement,
        };
        act(&mut self.host, &mut store, &mut self.out)
    }

    fn map(&mut self, now: Now, mapping: &Arc<Mapping>) {
        self.host.on_mapping(mapping, Some(self.no));
        assert!(self.with(|host, store, out| host.take_up(now, store, out)));
        let taken = self.out.next_call();
        assert!(matches!(taken, Some(Call::MappingTaken(_, own)) if own == self.no));
    }

    fn set(&mut self, name: &[u8], value: &[u8]) {
        let key = self.shard.key(name);
        let (value, clear) = (NewValue::Copy(value), ExpirySetting::Clear);
        self.shard.set(0, key, value, clear, at(0));
    }

    fn get(&mut self, name: &[u8]) -> Option<Vec<u8>> {
        let key = self.shard.key(name);
        let value = self.shard.get(0, key, at(0)).expect("a string")?;
        Some(value.bytes().to_vec())
    }

    /// Ends the open frame, which is not logged yet. Returns the last write of chains in it.
    fn end_frame(&mut self) -> Option<u64> {
        let written = self.with(|host, store, _| host.on_frame_ends(store));
        self.shard.observers_mut().empty_journal();
        self.frames += 1;
        self.host.on_frame(self.frames);
        written
    }

    /// The log has everything. Returns the messages that leave.
    fn log(&mut self) -> Vec<Said> {
        self.end_frame();
        self.logged = self.frames;
        self.say()
    }

    fn say(&mut self) -> Vec<Said> {
        let open = self.frames + u64::from(!self.shard.journal().is_empty());
        self.host.on_log(open, self.logged);
        self.host.take_messages()
    }

    fn receive(&mut self, now: Now, from: NodeNo, envelope: Envelope) {
        let from = Peer {
            node: from,
            worker: 0,
        };
        self.with(|host, store, _| host.on_peer(now, from, envelope, store));
    }

    fn serves(&self, now: Now, key: &[u8]) -> Result<(), Refused> {
        self.host.serves(now, slot_of(key), Needs::Head)
    }

    fn mark(&self, key: &[u8]) -> Option<SlotMark> {
        self.shard.marks().slots().get(&slot_of(key)).copied()
    }

    /// The calls after progress.
    fn progress(&mut self) -> Vec<Call> {
        assert!(self.host.on_progress(&mut self.out));
        std::iter::from_fn(|| self.out.next_call()).collect()
    }
}

/// Both nodes log everything, and their messages arrive, until there are none.
fn exchange(nodes: &mut [Node; 2], now: Now) {
    for _ in 0..20 {
        for from in [0, 1] {
            nodes[from].with(|host, store, out| {
                host.on_progress(out);
                host.on_tick(now, |_| true, store);
            });
            for said in nodes[from].log() {
                nodes[1 - from].receive(now, NodeNo(from as u16), said.envelope);
            }
        }
    }
}

/// Two nodes with this chain for the slot of `k`.
fn pair(members: &[u16], learner: Option<u16>) -> [Node; 2] {
    let mut nodes = [Node::new(0), Node::new(1)];
    let mapping = mapping(1, &[(b"k", members, learner)]);
    nodes.iter_mut().for_each(|node| node.map(at(1), &mapping));
    exchange(&mut nodes, at(2));
    nodes
}

fn whole(seq: u64, since: u64) -> Option<SlotMark> {
    Some(SlotMark::Whole { seq, since })
}

fn items(said: &[Said]) -> usize {
    let is_items = |said: &&Said| matches!(said.envelope.message, Message::Items { .. });
    said.iter().filter(is_items).count()
}

#[test]
fn a_mapping_takes_up_slots() {
    let mut node = Node::new(0);
    assert_eq!(node.serves(at(1), b"k"), Err(Refused::NotYet));
    assert!(!node.with(|host, store, out| host.take_up(at(1), store, out)));
    assert!(!node.host.on_progress(&mut node.out), "there is no mapping");
    assert_eq!(node.host.wake_us(), None);

    node.map(at(1), &mapping(1, &[(b"there", &[1], None)]));
    assert_eq!(node.serves(at(1), b"k"), Ok(()));
    assert_eq!(node.mark(b"k"), whole(0, 1));
    let elsewhere = node.serves(at(1), b"there");
    assert!(matches!(elsewhere, Err(Refused::Elsewhere(_))));
    assert_eq!(node.mark(b"there"), None);
    assert!(node.host.is_alone());
    assert_eq!(node.host.answers_since(at(1), slot_of(b"k")), Some(1));

    let next = mapping(2, &[(b"there", &[1], None), (b"k", &[0], Some(1))]);
    node.map(at(2), &next);
    assert!(!node.host.is_alone());
    // An earlier mapping changes nothing; one that cannot follow is refused.
    node.map(at(3), &mapping(1, &[]));
    assert_eq!(node.host.figures().refused_mappings, 0);
    let unborn = mapping(3, &[(b"there", &[0], None)]);
    node.host.on_mapping(&unborn, Some(node.no));
    assert!(node.with(|host, store, out| host.take_up(at(4), store, out)));
    assert!(node.out.next_call().is_none());
    assert_eq!(node.host.figures().refused_mappings, 1);
    assert_eq!(node.host.mapping(), Some(&next));
}

#[test]
fn marks_on_disk_are_taken_over_by_the_first_number_alone() {
    for (number, is_whole) in [(0, true), (1, false)] {
        let mut node = Node::new(0);
        node.shard.observers_mut().set_journaling(true);
        let slot = slot_of(b"k");
        node.shard.mark_slot(slot, whole(7, 1));
        let asks = Envelope {
            epoch: 1,
            message: Message::Behind { slot, since: 1 },
        };
        node.receive(at(1), NodeNo(1), asks);
        assert_eq!(node.mark(b"k"), whole(7, 1), "without a mapping");
        node.map(at(1), &mapping(2, &[(b"k", &[0, 1], None)]));
        assert_eq!(node.mark(b"k"), whole(7, 2), "of this chain from now on");
        if number == 1 {
            node.no = NodeNo(1);
            node.map(at(2), &mapping(3, &[(b"k", &[0, 1], None)]));
        }
        let is_here = matches!(node.mark(b"k"), Some(SlotMark::Whole { seq: 7, .. }));
        assert_eq!(is_here, is_whole);
    }
}

#[test]
fn effects_are_appended_once() {
    let mut nodes = pair(&[0, 1], None);
    assert_eq!(nodes[0].serves(at(3), b"k"), Ok(()));
    nodes[0].set(b"k", b"1");
    // The chain receives what commands did before it hears of anything else.
    nodes[0].with(|host, store, _| host.on_peer_up(at(3), NodeNo(1), store));
    assert_eq!(nodes[0].host.figures().appended, 1);
    nodes[0].with(|host, store, _| host.on_peer_up(at(3), NodeNo(1), store));
    assert_eq!(nodes[0].host.figures().appended, 1, "marks are not writes");
    nodes[0].set(b"k", b"2");
    assert_eq!(nodes[0].end_frame(), Some(2));
    assert_eq!(nodes[0].end_frame(), None);
    assert_eq!(nodes[0].mark(b"k"), whole(2, 1));

    exchange(&mut nodes, at(4));
    assert_eq!(nodes[1].get(b"k"), Some(b"2".to_vec()));
    assert_eq!(nodes[1].mark(b"k"), whole(2, 1));
    assert_eq!(nodes[0].host.settled(), 2);
    assert!(!nodes[1].host.is_alone());
    let appended = nodes[1].host.figures().appended;
    assert_eq!(appended, 0, "what it received is in the chain already");
}

#[test]
fn a_node_without_copies_appends_nothing() {
    let mut node = Node::new(0);
    node.map(at(1), &mapping(1, &[]));
    node.set(b"k", b"1");
    assert_eq!(node.end_frame(), None);
    assert_eq!(node.host.figures().appended, 0);
}

#[test]
fn messages_wait_for_the_log() {
    let mut nodes = pair(&[0, 1], None);
    let node = &mut nodes[0];
    node.set(b"k", b"1");
    let later = at(2 + LEASE_US / 2);
    node.with(|host, store, _| host.on_tick(later, |_| true, store));
    let said = node.say();
    assert_eq!(items(&said), 0, "its frame is open");
    let asks = |said: &Said| matches!(said.envelope.message, Message::Ask { .. });
    assert!(said.iter().any(asks), "leases wait for nothing");
    node.end_frame();
    assert_eq!(items(&node.say()), 0, "its frame is not logged");
    assert_eq!(node.host.figures().held, 1);
    node.logged = node.frames;
    assert_eq!(items(&node.say()), 1);
}

#[test]
fn a_lost_chain_is_reported_once() {
    let mut nodes = pair(&[0, 1], None);
    let node = &mut nodes[0];
    node.set(b"k", b"1");
    assert_eq!(node.end_frame(), Some(1));
    assert!(node.progress().is_empty());
    node.map(at(3), &mapping(2, &[(b"k", &[1], None)]));
    assert!(matches!(node.progress()[..], [Call::ChainsLost]));
    assert!(node.progress().is_empty());
    assert_eq!(node.host.figures().lost, 1);
}

#[test]
fn slots_of_a_newcomer_are_marked() {
    let mut nodes = [Node::new(0), Node::new(1)];
    let alone = mapping(1, &[]);
    nodes.iter_mut().for_each(|node| node.map(at(1), &alone));
    nodes[0].set(b"k", b"1");
    exchange(&mut nodes, at(2));
    assert_eq!(nodes[1].mark(b"k"), None);

    let learning = mapping(2, &[(b"k", &[0], Some(1))]);
    nodes.iter_mut().for_each(|node| node.map(at(3), &learning));
    assert_eq!(nodes[1].mark(b"k"), Some(SlotMark::Part));
    let slot = slot_of(b"k");
    for step in 0..20 {
        exchange(&mut nodes, at(10_000 + step * 5_000));
    }
    assert_eq!(nodes[0].host.learned(), [(slot, NodeNo(1), 2)]);
    assert_eq!(nodes[1].mark(b"k"), nodes[0].mark(b"k"));
    assert!(matches!(nodes[1].mark(b"k"), Some(SlotMark::Whole { .. })));
    assert_eq!(nodes[1].get(b"k"), Some(b"1".to_vec()));

    // It leaves again: nothing of the slot stays, and no mark.
    let left = mapping(3, &[(b"k", &[0], None)]);
    nodes
        .iter_mut()
        .for_each(|node| node.map(at(200_000), &left));
    assert_eq!(nodes[1].mark(b"k"), Some(SlotMark::Part));
    for step in 0..20 {
        exchange(&mut nodes, at(210_000 + step * 5_000));
    }
    assert_eq!(nodes[1].mark(b"k"), None);
    assert_eq!(nodes[1].get(b"k"), None);
}

#[test]
fn copies_pause_for_their_rate() {
    let slow = ChainSettings {
        move_rate: 1_000,
        ..settings()
    };
    let mut nodes = [Node::with_settings(0, slow), Node::new(1)];
    nodes[0].map(at(1), &mapping(1, &[]));
    nodes[0].set(b"k", &[7; 10_000]);
    nodes[0].log();
    let learning = mapping(2, &[(b"k", &[0], Some(1))]);
    nodes.iter_mut().for_each(|node| node.map(at(2), &learning));
    exchange(&mut nodes, at(3));
    let step_at = nodes[0].host.step_at;
    assert!(step_at >= 10_000_000, "10 kB at 1 kB/s: {step_at} us");
    nodes[0].with(|host, store, _| host.on_tick(at(4), |_| true, store));
    assert_eq!(nodes[0].host.step_at, step_at);
}

#[test]
fn messages_about_slots_of_other_workers_are_ignored() {
    let mut nodes = pair(&[0, 1], None);
    nodes[1].host.slots = 0..slot_of(b"k");
    nodes[0].set(b"k", b"1");
    exchange(&mut nodes, at(3));
    assert_eq!(nodes[1].get(b"k"), None);
    assert_eq!(nodes[0].host.settled(), 0);
}
