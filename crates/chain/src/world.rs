//! A small world of nodes in which chains are tried: links that delay, break
//! and come back, one way or both; nodes that stop, start again and pause;
//! clocks that run fast and slow; a coordinator that some cannot reach, with
//! the real planner. Clients append to lists and read them.
//!
//! The oracle: what is acknowledged is in every later read; a read's list is
//! the beginning of every later read's; after quiet all members have the same.

mod clients;
mod network;
mod node;

use crate::planted::{PLANTED, Planted};
use clients::Clients;
use network::Network;
use node::Node;
use rufous_base::rng::Rng;
use rufous_mapping::planner::{self, Limits, Seen};
use rufous_mapping::{Mapping, Member, NodeId, NodeNo};
use std::collections::BTreeMap;

/// The slots that are looked at, of all.
const SLOTS: [u16; 3] = [0, 7000, 12345];
const LEASE_US: u64 = 1_000_000;
/// Who was not heard of for so long is taken for gone.
const DETECTION_US: u64 = 2_000_000;

struct World {
    now: u64,
    rng: Rng,
    nodes: BTreeMap<NodeNo, Node>,
    network: Network,
    mapping: Mapping,
    seen: Seen,
    /// When the coordinator last heard of each.
    heard: BTreeMap<NodeNo, u64>,
    clients: Clients,
    faults: bool,
}

fn member(n: u16, incarnation: u64) -> Member {
    Member {
        id: NodeId([n as u8; 20]),
        incarnation,
        peer: String::new(),
        plain: String::new(),
        cluster: String::new(),
        zone: String::new(),
        weight: 100,
        drains: false,
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let copies = 1 + rng.below(3) as usize;
        let count = copies as u64 + 1 + rng.below(3);
        let mut world = Self {
            now: 0,
            nodes: BTreeMap::new(),
            network: Network::new(rng.next_u64()),
            mapping: Mapping::new(copies),
            seen: Seen::default(),
            heard: BTreeMap::new(),
            clients: Clients::default(),
            faults: true,
            rng,
        };
        for n in 0..count as u16 {
            let mut node = Node::new(NodeNo(n), &mut world.rng);
            node.announced = n <= copies as u16;
            let announced = node.announced;
            world.nodes.insert(NodeNo(n), node);
            if announced {
                world.seen.alive.insert(NodeId([n as u8; 20]), member(n, 1));
            }
            world.heard.insert(NodeNo(n), 0);
        }
        world.plan();
        world
    }

    fn run(&mut self, until: u64) {
        while self.now < until {
            self.now += 1_000 + self.rng.below(9_000);
            if self.faults && self.rng.below(400) == 0 {
                self.fault();
            }
            self.coordinate();
            self.deliver();
            let numbers: Vec<NodeNo> = self.nodes.keys().copied().collect();
            for no in numbers {
                self.step(no);
            }
            self.clients.settle(self.now, &mut self.nodes);
        }
    }

    fn step(&mut self, no: NodeNo) {
        let Some(node) = self.nodes.get_mut(&no).filter(|node| node.runs(self.now)) else {
            return;
        };
        let local = node.clock(self.now);
        let (replica, store) = (&mut node.replica, &mut node.store);
        replica.tick(local, store);
        self.clients
            .act(no, self.now, local, replica, store, &mut self.rng);
        for (to, envelope) in replica.take_messages() {
            self.network.send(no, to, envelope, self.now);
        }
    }

    fn deliver(&mut self) {
        for (from, to, what) in self.network.due(self.now) {
            let Some(node) = self.nodes.get_mut(&to) else {
                continue;
            };
            if !node.runs(self.now) {
                // It waits in the link until the node runs again, or is gone.
                if node.is_up {
                    self.network.put_back(from, to, what, self.now);
                }
                continue;
            }
            let local = node.clock(self.now);
            match what {
                Some(envelope) => node.replica.receive(from, envelope, &mut node.store, local),
                None => node.replica.peer_up(from),
            }
        }
    }

    /// The coordinator hears of nodes, plans, and tells them.
    fn coordinate(&mut self) {
        for (no, node) in &mut self.nodes {
            let left = node.announced
                && self.mapping.next > no.0
                && !self.mapping.members.contains_key(no);
            if left || !node.coordinated || !node.runs(self.now) {
                continue;
            }
            self.heard.insert(*no, self.now);
            let id = NodeId([no.0 as u8; 20]);
            if node.announced
                && let Some(known) = self.seen.alive.get_mut(&id)
            {
                known.incarnation = node.incarnation;
            } else if node.announced {
                self.seen.alive.insert(id, member(no.0, node.incarnation));
            }
            let synced = node.replica.synced();
            let synced = synced.map(|(slot, no, since)| (slot..slot + 1, no, since));
            for (slots, no, since) in synced {
                self.seen.learned.add(slots, no, since);
            }
        }
        let (heard, now, mapping) = (&self.heard, self.now, &self.mapping);
        self.seen.alive.retain(|id, _| {
            let no = NodeNo(u16::from(id.0[0]));
            let left = mapping.next > no.0 && !mapping.members.contains_key(&no);
            !left && now - heard[&no] < DETECTION_US
        });
        self.seen.away_ms = heard
            .iter()
            .map(|(no, at)| (*no, (now - at) / 1000))
            .collect();
        if self.rng.below(8) == 0 {
            self.plan();
        }
        for node in self.nodes.values_mut() {
            let tells = node.runs(self.now) && node.coordinated && self.rng.below(6) == 0;
            let known = self.mapping.members.get(&node.no);
            let current = known.is_none_or(|known| known.incarnation == node.incarnation);
            if tells && current && node.replica.epoch() < self.mapping.epoch {
                let local = node.clock(self.now);
                let chains = SLOTS
                    .iter()
                    .map(|slot| (*slot, self.mapping.chains.of(*slot)));
                node.replica
                    .set_chains(self.mapping.epoch, chains, &mut node.store, local);
            }
        }
    }

    fn plan(&mut self) {
        // Nobody tells of the other slots: they are learned at once.
        for (slots, chain) in self.mapping.chains.ranges() {
            let mut start = slots.start;
            for end in SLOTS
                .into_iter()
                .filter(|slot| slots.contains(slot))
                .chain([slots.end])
            {
                if let Some(learner) = chain.learner {
                    self.seen.learned.add(start..end, learner, chain.since);
                }
                start = end + 1;
            }
        }
        let limits = Limits {
            learning: 16384,
            ..Limits::default()
        };
        if let Some(next) = planner::next(&self.mapping, &self.seen, &limits) {
            self.mapping = next;
            self.seen.learned.clear();
        }
    }

    fn fault(&mut self) {
        let count = self.nodes.len() as u64;
        let (a, b) = (
            NodeNo(self.rng.below(count) as u16),
            NodeNo(self.rng.below(count) as u16),
        );
        let for_us = 100_000 + self.rng.below(6_000_000);
        let until = self.now + for_us;
        let number = |no: NodeNo| no;
        let Some(node) = self.nodes.get_mut(&number(a)) else {
            return;
        };
        match self.rng.below(8) {
            0 => node.pause(until),
            1 => {
                node.stop();
                self.network.forget(a);
                self.clients.lose(a);
            }
            2 => self.start(a),
            3 => node.coordinated = !node.coordinated,
            4 | 5 if a != b => self.network.cut(a, b, self.rng.below(2) == 0, until),
            // In the order of their numbers, as a mapping gives them.
            6 => {
                let admitted = self.mapping.next;
                let mut later = self.nodes.iter_mut().filter(|(_, node)| !node.announced);
                if let Some((no, node)) = later.next()
                    && no.0 == admitted
                {
                    node.announced = true;
                    let no = *no;
                    self.start(no);
                }
            }
            7 if self.rng.below(4) == 0 && self.seen.alive.len() > 2 => {
                self.seen
                    .draining
                    .extend(self.mapping.number_of(NodeId([a.0 as u8; 20])));
            }
            _ => (),
        }
    }

    fn start(&mut self, no: NodeNo) {
        let Some(node) = self.nodes.get_mut(&no).filter(|node| !node.is_up) else {
            return;
        };
        node.start();
        for other in self.nodes.keys().filter(|other| **other != no) {
            self.network.begin(no, *other, self.now);
        }
    }

    /// No more faults: everything finishes.
    fn quiet(&mut self) {
        self.faults = false;
        self.network.heal(self.now);
        let numbers: Vec<NodeNo> = self.nodes.keys().copied().collect();
        numbers.into_iter().for_each(|no| self.start(no));
        for node in self.nodes.values_mut() {
            node.coordinated = true;
            node.pause(0);
        }
        self.clients.stop = true;
        self.run(self.now + 30_000_000);
        for slot in SLOTS {
            let chain = *self.mapping.chains.of(slot);
            assert_eq!(
                *chain.members,
                *self.mapping.ring.owners(slot),
                "slot {slot}: {chain:?}"
            );
            let first = chain.members[0];
            for no in &chain.members {
                let (one, other) = (&self.nodes[&first], &self.nodes[no]);
                assert_eq!(
                    one.store.lists(slot),
                    other.store.lists(slot),
                    "{first} and {no}"
                );
                let state = other.replica.slot(slot);
                assert!(
                    other.replica.may_read(slot, other.clock(self.now)),
                    "{no} waits: {state:?}, epoch {} of {}",
                    other.replica.epoch(),
                    self.mapping.epoch,
                );
            }
            self.clients
                .judge(slot, self.nodes[&first].store.lists(slot));
        }
    }
}

fn run(seed: u64) -> (u64, u64) {
    let mut world = World::new(seed);
    world.run(30_000_000);
    world.quiet();
    (world.mapping.epoch, world.clients.acknowledged())
}

#[test]
fn what_is_acknowledged_is_there_for_ever() {
    let (mut epochs, mut acknowledged) = (0, 0);
    let seeds: u64 = std::env::var("SEEDS").map_or(12, |seeds| seeds.parse().expect("a number"));
    let first = std::env::var("SEED").map_or(0, |seed| seed.parse().expect("a number"));
    for seed in first..first + seeds {
        println!("seed {seed}");
        let (e, a) = run(seed);
        (epochs, acknowledged) = (epochs + e, acknowledged + a);
    }
    println!("{epochs} epochs, {acknowledged} acknowledged writes");
    assert!(
        epochs > seeds * 10 && acknowledged > seeds * 200,
        "{epochs}, {acknowledged}"
    );
}

#[test]
fn the_oracle_sees_planted_faults() {
    use Planted::{
        AckedEarly, CopyNotFiltered, LearnedEarly, NoLease, NotHandedOver, NotOutwaited,
        NotRepeated, OldChainTaken,
    };
    let faults = [
        AckedEarly,
        CopyNotFiltered,
        LearnedEarly,
        NoLease,
        NotHandedOver,
        NotOutwaited,
        NotRepeated,
        OldChainTaken,
    ];
    for fault in faults {
        PLANTED.with(|planted| planted.set(Some(fault)));
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| ()));
        let found = (0..60).find(|seed| std::panic::catch_unwind(|| run(*seed)).is_err());
        std::panic::set_hook(hook);
        PLANTED.with(|planted| planted.set(None));
        println!("{fault:?}: {found:?}");
        assert!(found.is_some(), "{fault:?} was not found");
    }
}
