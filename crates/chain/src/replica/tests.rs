//! Workers of nodes that share slots: nodes with different numbers of workers, and slots whose data
//! is incomplete or wrong.

mod waiting;

use super::*;
use rufous_base::limits::SLOTS;
use rufous_mapping::{Chain, Chains, Member, Members, NodeId};

const LEASE_US: u64 = 1_000_000;
pub(super) const SLOTS_USED: [u16; 4] = [0, 5000, 9000, 16000];

/// The applied effects by slot; those of the slot `refused` fail.
#[derive(Default)]
pub(super) struct Effects {
    slots: BTreeMap<u16, Vec<Vec<u8>>>,
    copies: BTreeMap<u16, usize>,
    refused: Option<u16>,
    /// The slot whose effect has just failed.
    failed: Option<u16>,
}

impl Effects {
    fn of(&self, slot: u16) -> Vec<Vec<u8>> {
        self.slots.get(&slot).cloned().unwrap_or_default()
    }
}

impl Store for Effects {
    fn apply(&mut self, slot: u16, effect: &[u8]) {
        if self.refused == Some(slot) {
            return self.failed = Some(slot);
        }
        self.slots.entry(slot).or_default().push(effect.to_vec());
    }

    fn clear(&mut self, slot: u16) -> bool {
        self.slots.entry(slot).or_default().pop();
        self.slots[&slot].is_empty()
    }

    fn begin_copy(&mut self, slot: u16) {
        self.copies.insert(slot, 0);
    }

    fn end_copy(&mut self, slot: u16) {
        self.copies.remove(&slot);
    }

    fn note(&mut self, _slot: u16, _effect: &[u8]) {}

    fn copy(&mut self, slot: u16) -> Option<Vec<u8>> {
        let at = self.copies.get_mut(&slot).expect("it was begun");
        *at += 1;
        self.slots.get(&slot)?.get(*at - 1).cloned()
    }

    fn load(&mut self, slot: u16, chunk: &[u8]) {
        self.apply(slot, chunk);
    }
}

/// Nodes with these numbers of workers, a mapping of them, and one clock.
pub(super) struct World {
    workers: Vec<u16>,
    pub(super) replicas: BTreeMap<Peer, (Replica, Effects)>,
    mapping: Arc<Mapping>,
    pub(super) now: u64,
    /// Messages to this node do not arrive.
    pub(super) deaf: Option<u16>,
}

fn member(n: u16, workers: u16) -> Member {
    Member {
        id: NodeId([n as u8; 20]),
        incarnation: 1,
        peer: String::new(),
        plain: String::new(),
        cluster: String::new(),
        zone: String::new(),
        weight: 100,
        workers,
        drains: false,
        folder: Default::default(),
    }
}

pub(super) fn peer(node: u16, worker: u16) -> Peer {
    let node = NodeNo(node);
    Peer { node, worker }
}

impl World {
    pub(super) fn new(workers: &[u16]) -> Self {
        let mut mapping = Mapping::new(2);
        let mut replicas = BTreeMap::new();
        for (n, count) in (0..).zip(workers) {
            mapping.members.insert(NodeNo(n), member(n, *count));
            for worker in 0..*count {
                let replica = Replica::new(NodeNo(n), worker, *count, 1, LEASE_US, None);
                replicas.insert(peer(n, worker), (replica, Effects::default()));
            }
        }
        mapping.next = workers.len() as u16;
        Self {
            workers: workers.to_vec(),
            replicas,
            mapping: Arc::new(mapping),
            now: 0,
            deaf: None,
        }
    }

    /// The next epoch: the slots in use have this chain.
    pub(super) fn agree(&mut self, members: &[u16], learner: Option<u16>) {
        let nodes: Vec<NodeNo> = members.iter().map(|n| NodeNo(*n)).collect();
        self.agree_on(Chain {
            members: Members::of(&nodes).expect("few"),
            learner: learner.map(NodeNo),
            born: 1,
            since: self.mapping.epoch + 1,
            ..Chain::default()
        });
    }

    fn take_up(&mut self, peer: Peer) {
        let (replica, store) = self.replicas.get_mut(&peer).expect("there");
        let taken = replica.take_up(&self.mapping, store, self.now);
        assert_eq!(taken, Ok(true));
    }

    pub(super) fn all_take_up(&mut self) {
        let all: Vec<Peer> = self.replicas.keys().copied().collect();
        all.into_iter().for_each(|peer| self.take_up(peer));
    }

    /// Lets time pass; all replicas work, and all messages arrive.
    pub(super) fn run(&mut self, millis: u64) {
        for _ in 0..millis {
            self.now += 1_000;
            let mut said = Vec::new();
            for (from, (replica, store)) in &mut self.replicas {
                if replica.wake_at() <= self.now {
                    replica.tick(self.now);
                }
                replica.work(store, 8, |_| true);
                for (to, envelope) in replica.take_messages() {
                    said.push((*from, to, envelope));
                }
            }
            let deaf = self.deaf.map(NodeNo);
            said.retain(|(_, to, _)| Some(to.node) != deaf);
            for (from, to, envelope) in said {
                if let Some((slot, _)) = envelope.message.chain() {
                    let at = |peer: Peer| {
                        member(0, self.workers[usize::from(peer.node.0)]).worker_of(slot)
                    };
                    assert_eq!((from.worker, to.worker), (at(from), at(to)));
                }
                let (replica, store) = self.replicas.get_mut(&to).expect("there");
                replica.receive(from, envelope, store, self.now);
                if let Some(slot) = store.failed.take() {
                    replica.learn_anew(slot);
                }
            }
        }
    }

    fn at(&mut self, node: u16, slot: u16) -> &mut (Replica, Effects) {
        let worker = member(0, self.workers[usize::from(node)]).worker_of(slot);
        self.replicas.get_mut(&peer(node, worker)).expect("there")
    }

    pub(super) fn serves(&mut self, node: u16, slot: u16) -> bool {
        let now = self.now;
        self.at(node, slot).0.serves(slot, now).is_ok()
    }

    /// A write at the head. Returns its position.
    pub(super) fn write(&mut self, node: u16, slot: u16, effect: u8) -> u64 {
        assert!(self.serves(node, slot));
        let (replica, store) = self.at(node, slot);
        store.slots.entry(slot).or_default().push(vec![effect]);
        replica.append(slot, [effect].into(), store)
    }

    fn restart(&mut self, node: u16) {
        let count = self.workers[usize::from(node)];
        for worker in 0..count {
            let replica = Replica::new(NodeNo(node), worker, count, 1, LEASE_US, None);
            self.replicas.get_mut(&peer(node, worker)).expect("there").0 = replica;
        }
    }
}

#[test]
fn slots_go_along_the_workers_that_have_them() {
    let mut world = World::new(&[1, 3, 2]);
    world.agree(&[1, 0, 2], None);
    world.all_take_up();
    // The second of three workers shares slots with the first of two, too.
    let peers = |world: &World, at: Peer| world.replicas[&at].0.peers.clone();
    assert_eq!(peers(&world, peer(1, 0)), [peer(0, 0), peer(2, 0)].into());
    assert_eq!(peers(&world, peer(1, 1)), [peer(0, 0), peer(2, 1)].into());
    let all = [peer(1, 0), peer(1, 1), peer(1, 2), peer(2, 0), peer(2, 1)];
    assert_eq!(peers(&world, peer(0, 0)), all.into());
    world.run(20);
    for slot in SLOTS_USED {
        let position = world.write(1, slot, 7);
        world.run(20);
        assert!(world.at(1, slot).0.settled() >= position);
        for node in 0..3 {
            assert_eq!(world.at(node, slot).1.of(slot), [[7]], "{node}, {slot}");
        }
    }
    let equal = [peer(1, 2)].into();
    let mut world = World::new(&[4, 4]);
    world.agree(&[0, 1], None);
    world.all_take_up();
    assert_eq!(peers(&world, peer(0, 2)), equal);
}

/// Both workers of the first node act by the first epoch; one of them learns of the second, and
/// through it the other node does.
#[test]
fn a_worker_is_outwaited_though_the_one_beside_it_knows() {
    let mut world = World::new(&[2, 1]);
    world.agree(&[0, 1], None);
    world.all_take_up();
    world.run(20);
    assert!(world.serves(0, 0) && world.serves(0, 16000));
    world.agree(&[1], None);
    world.take_up(peer(0, 0));
    world.take_up(peer(1, 0));
    world.run(20);
    assert!(!world.serves(0, 0) && world.serves(0, 16000));
    assert!(!world.serves(1, 16000), "two would answer");
    world.run(1_000);
    assert!(!world.serves(0, 16000) && world.serves(1, 16000));
}

#[test]
fn a_node_with_other_workers_is_another_one() {
    let mut world = World::new(&[2, 1]);
    world.agree(&[0, 1], None);
    let mut replica = Replica::new(NodeNo(0), 0, 3, 1, LEASE_US, None);
    let taken = replica.take_up(&world.mapping, &mut Effects::default(), 0);
    assert_eq!(taken, Ok(false));
}

#[test]
fn a_part_on_disk_goes_before_the_slot_is_learnt() {
    let mut world = World::new(&[2, 1]);
    world.agree(&[0], None);
    world.all_take_up();
    world.run(5);
    world.write(0, 5000, 1);
    let (replica, store) = world.at(1, 5000);
    store.slots.insert(5000, vec![vec![66]; 9]);
    replica.found_incomplete(5000);
    world.agree(&[0], Some(1));
    world.all_take_up();
    world.run(5);
    assert!(!world.at(0, 5000).0.synced().any(|(slot, ..)| slot == 5000));
    world.run(20);
    assert!(world.at(0, 5000).0.synced().any(|(slot, ..)| slot == 5000));
    assert_eq!(world.at(1, 5000).1.of(5000), [[1]]);
}

/// At each position of a chain of two, and with a learner behind it.
#[test]
fn a_part_on_disk_goes_before_the_slot_is_owned() {
    for found in 0..2 {
        let mut world = World::new(&[2, 1, 1]);
        let (replica, store) = world.at(found, 5000);
        store.slots.insert(5000, vec![vec![66]; 9]);
        replica.found_incomplete(5000);
        world.agree(&[0, 1], None);
        world.all_take_up();
        world.run(5);
        assert!(!world.serves(0, 5000));
        assert!(world.serves(0, 16000));
        world.run(20);
        let position = world.write(0, 5000, 1);
        world.run(20);
        assert_eq!(world.at(0, 5000).0.settled(), position);
        for node in 0..2 {
            assert_eq!(world.at(node, 5000).1.of(5000), [[1]], "{found}, {node}");
        }
        // Its first epoch may be over before all of its data is dropped.
        let mut world = World::new(&[2, 1, 1]);
        let (replica, store) = world.at(found, 5000);
        store.slots.insert(5000, vec![vec![66]; 19]);
        replica.found_incomplete(5000);
        world.agree(&[0, 1], None);
        world.all_take_up();
        world.run(5);
        world.agree(&[0, 1], Some(2));
        world.all_take_up();
        world.run(50);
        world.write(0, 5000, 1);
        world.run(50);
        assert_eq!(world.at(2, 5000).1.of(5000), [[1]], "{found}");
        assert!(world.at(1, 5000).0.synced().any(|(slot, ..)| slot == 5000));
    }
}

#[test]
fn a_learner_that_cannot_do_something_learns_anew() {
    let mut world = World::new(&[1, 2]);
    world.agree(&[0], None);
    world.all_take_up();
    world.run(5);
    for n in 1..9 {
        world.write(0, 9000, n);
    }
    world.agree(&[0], Some(1));
    world.all_take_up();
    world.run(4);
    world.at(1, 9000).1.refused = Some(9000);
    world.run(20);
    assert!(!world.at(0, 9000).0.synced().any(|(slot, ..)| slot == 9000));
    assert_eq!(world.at(1, 9000).0.broken().count(), 0);
    world.at(1, 9000).1.refused = None;
    world.run(50);
    assert!(world.at(0, 9000).0.synced().any(|(slot, ..)| slot == 9000));
    assert_eq!(world.at(1, 9000).1.of(9000), world.at(0, 9000).1.of(9000));
}

/// A node that had all of a slot and lost it: nothing is acknowledged without it, and the others go
/// on when it is out of the chain; then it learns the slot again.
#[test]
fn a_member_that_cannot_do_something_says_nothing_until_it_is_out() {
    let mut world = World::new(&[1, 2]);
    world.agree(&[0, 1], None);
    world.all_take_up();
    world.run(20);
    world.write(0, 9000, 1);
    world.run(20);
    world.at(1, 9000).1.refused = Some(9000);
    let position = world.write(0, 9000, 2);
    world.run(20);
    assert_eq!(world.at(1, 9000).0.broken().collect::<Vec<_>>(), [9000]);
    assert!(world.at(0, 9000).0.settled() < position, "not everywhere");
    world.at(1, 9000).1.refused = None;
    let now = world.now;
    assert!(!world.at(1, 9000).0.may_read(9000, now));
    // A new link and a new epoch with it: the node still sends nothing.
    for node in 0..2 {
        world.at(node, 9000).0.peer_up(NodeNo(1 - node));
    }
    world.agree(&[0, 1], None);
    world.all_take_up();
    world.run(2_000);
    assert!(world.at(0, 9000).0.settled() < position && !world.serves(0, 9000));
    assert!(world.serves(0, 5000) && world.serves(0, 16000));
    world.agree(&[0], None);
    world.all_take_up();
    world.run(2_000);
    assert!(world.at(0, 9000).0.settled() >= position && world.serves(0, 9000));
    world.agree(&[0], Some(1));
    world.all_take_up();
    world.run(50);
    assert_eq!(world.at(1, 9000).0.broken().count(), 0);
    assert_eq!(world.at(1, 9000).1.of(9000), [[1], [2]]);
    world.agree(&[0, 1], None);
    world.all_take_up();
    world.run(20);
    let position = world.write(0, 9000, 3);
    world.run(20);
    assert_eq!(world.at(0, 9000).0.settled(), position);
}

/// It does not serve, nor does any other node meanwhile; its pending writes are not acknowledged.
#[test]
fn a_head_that_cannot_take_over_is_no_head() {
    let mut world = World::new(&[2, 2]);
    world.agree(&[0, 1], None);
    world.all_take_up();
    world.run(20);
    world.write(0, 9000, 1);
    // Head and tail change places before the other node has it.
    world.agree(&[1, 0], None);
    world.at(1, 9000).1.refused = Some(9000);
    world.all_take_up();
    world.run(2_000);
    assert_eq!(world.at(1, 9000).0.broken().collect::<Vec<_>>(), [9000]);
    assert!(!world.serves(1, 9000) && world.serves(1, 5000));
    world.agree(&[0], None);
    world.restart(1);
    world.all_take_up();
    world.run(2_000);
    assert!(world.serves(0, 9000));
    assert_eq!(world.at(0, 9000).1.of(9000), [[1]]);
}

/// The last peer that had to know of an epoch says so long before its lease ends, and before the
/// next lease is asked for.
#[test]
fn slots_are_served_as_soon_as_all_have_heard_of_the_epoch() {
    let mut world = World::new(&[1, 1, 1]);
    world.agree(&[0, 1], Some(2));
    world.all_take_up();
    world.run(20);
    world.agree(&[0, 1, 2], None);
    world.take_up(peer(0, 0));
    world.take_up(peer(2, 0));
    world.run(20);
    assert!(!world.serves(0, 9000), "one may answer by the epoch before");
    world.take_up(peer(1, 0));
    world.run(5);
    assert!(world.serves(0, 9000));
}

/// A peer that has just connected was asked before it could receive the question.
#[test]
fn leases_are_asked_for_as_soon_as_a_session_begins() {
    let mut world = World::new(&[1, 1]);
    world.agree(&[0, 1], None);
    world.deaf = Some(1);
    world.all_take_up();
    world.run(20);
    world.deaf = None;
    for node in 0..2 {
        world.at(node, 0).0.peer_up(NodeNo(1 - node));
    }
    world.run(5);
    assert!(world.serves(0, 0));
}

/// Nothing was ever written, so that a learner lacks only the acknowledgement that it is complete:
/// as the only member it would never serve.
#[test]
fn a_learner_of_what_is_empty_has_all_once_it_says_so() {
    let mut world = World::new(&[1, 1, 1]);
    world.agree(&[0, 2], None);
    world.all_take_up();
    world.run(20);
    // The last node is unreachable: its lease has to be outwaited, and the copy is sent before
    // that.
    world.agree(&[0], Some(1));
    world.take_up(peer(0, 0));
    world.take_up(peer(1, 0));
    world.deaf = Some(1);
    world.run(1_500);
    assert!(world.at(0, 0).0.is_open(0));
    assert_eq!(world.at(0, 0).0.synced().count(), 0);
    world.deaf = None;
    world.at(0, 0).0.peer_up(NodeNo(1));
    world.at(1, 0).0.peer_up(NodeNo(0));
    world.run(20);
    assert_eq!(world.at(0, 0).0.synced().count(), SLOTS_USED.len());
}

/// More writes than a message takes: none were delivered while the link was down.
#[test]
fn what_is_sent_again_is_sent_in_several_messages() {
    let mut world = World::new(&[1, 1]);
    world.agree(&[0, 1], None);
    world.all_take_up();
    world.run(20);
    world.deaf = Some(1);
    let mut position = 0;
    for n in 0..9_000_u32 {
        position = world.write(0, 5000, n as u8);
    }
    world.run(1);
    world.deaf = None;
    world.at(0, 5000).0.peer_up(NodeNo(1));
    world.at(1, 5000).0.peer_up(NodeNo(0));
    let most = |message: &Message| match message {
        Message::Items { items, .. } => items.len(),
        _ => 0,
    };
    let mut said = Vec::new();
    for (to, envelope) in world.at(1, 5000).0.take_messages() {
        let (replica, store) = world.at(0, 5000);
        assert_eq!(to, peer(0, 0));
        replica.receive(peer(1, 0), envelope, store, 0);
        said.extend(replica.take_messages());
    }
    let again: Vec<usize> = said.iter().map(|(_, said)| most(&said.message)).collect();
    assert!(again.iter().all(|count| *count <= 4096), "{again:?}");
    for (_, envelope) in said {
        let (replica, store) = world.at(1, 5000);
        replica.receive(peer(0, 0), envelope, store, 0);
    }
    world.run(20);
    assert_eq!(world.at(0, 5000).0.settled(), position);
    assert_eq!(world.at(1, 5000).1.of(5000).len(), 9_000);
}
