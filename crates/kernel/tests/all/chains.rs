//! Shards of several nodes whose slots go along chains: one learns a slot while
//! it is written, takes part in its chain, and has it alone when the other has
//! left, where nothing of it stays.

use rufous_base::Now;
use rufous_base::rng::Rng;
use rufous_base::slot::slot_of;
use rufous_chain::{Envelope, Peer, Replica};
use rufous_datatype::set::{Op as SetOp, Set};
use rufous_kernel::chains::Slots;
use rufous_kernel::durable::Effect;
use rufous_kernel::shard::{ExpirySetting, NewValue, OwnedValue, Shard, slot_of_effect};
use rufous_mapping::{Chain, Chains, Mapping, Member, Members, NodeId, NodeNo};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

const LEASE_US: u64 = 1_000_000;
/// Records that a call looks at.
const LOOKS: usize = 40;

struct Node {
    no: NodeNo,
    shard: Shard,
    replica: Replica,
}

/// Nodes, what is under way between them, and the time of all.
struct World {
    nodes: Vec<Node>,
    links: BTreeMap<(NodeNo, NodeNo), VecDeque<Envelope>>,
    mapping: Arc<Mapping>,
    now: Now,
    rng: Rng,
}

fn member(n: u8) -> Member {
    Member {
        id: NodeId([n; 20]),
        incarnation: 1,
        peer: String::new(),
        plain: String::new(),
        cluster: String::new(),
        zone: String::new(),
        weight: 100,
        workers: 1,
        drains: false,
        folder: Default::default(),
    }
}

/// A node's one worker.
fn worker_of(node: NodeNo) -> Peer {
    Peer { node, worker: 0 }
}

impl World {
    fn new(seed: u64) -> Self {
        let node = |n: u16| {
            let mut shard = Shard::new(seed + u64::from(n));
            shard.observers_mut().set_journaling(true);
            Node {
                no: NodeNo(n),
                shard,
                replica: Replica::new(NodeNo(n), 0, 1, 1, LEASE_US, None),
            }
        };
        let mut mapping = Mapping::new(2);
        mapping.members = (0..2).map(|n| (NodeNo(n.into()), member(n))).collect();
        mapping.next = 2;
        Self {
            nodes: (0..2).map(node).collect(),
            links: BTreeMap::new(),
            mapping: Arc::new(mapping),
            now: Now {
                mono_us: 1,
                unix_us: 1_000_000,
            },
            rng: Rng::new(seed),
        }
    }

    /// The next epoch: all slots have this chain.
    fn agree(&mut self, members: &[u16], learner: Option<u16>) {
        let nodes: Vec<NodeNo> = members.iter().map(|n| NodeNo(*n)).collect();
        let mut mapping = Mapping::clone(&self.mapping);
        mapping.epoch += 1;
        let chain = Chain {
            members: Members::of(&nodes).expect("few"),
            learner: learner.map(NodeNo),
            born: 1,
            since: mapping.epoch,
            lost: 0,
            phase: Default::default(),
        };
        mapping.chains = Chains::of_ranges([(0..16384, chain)]).expect("all slots");
        mapping.follows(&self.mapping).expect("a next one");
        self.mapping = Arc::new(mapping);
        for node in &mut self.nodes {
            let mut slots = Slots::new(&mut node.shard, self.now, LOOKS);
            let mono_us = self.now.mono_us;
            let taken = node.replica.take_up(&self.mapping, &mut slots, mono_us);
            assert_eq!(taken, Ok(true));
        }
    }

    /// Some messages arrive, in order, and everybody works a little.
    fn step(&mut self) {
        self.now.mono_us += 1_000;
        let mono_us = self.now.mono_us;
        for node in &mut self.nodes {
            let mut slots = Slots::new(&mut node.shard, self.now, LOOKS);
            if mono_us >= node.replica.wake_at() {
                node.replica.tick(mono_us);
            }
            node.replica.work(&mut slots, 8, |_| true);
            for (to, envelope) in node.replica.take_messages() {
                let link = self.links.entry((node.no, to.node)).or_default();
                link.push_back(envelope);
            }
        }
        for (&(from, to), link) in &mut self.links {
            let some = self.rng.below(link.len() as u64 + 1) as usize;
            let node = &mut self.nodes[usize::from(to.0)];
            for envelope in link.drain(..some) {
                let mut slots = Slots::new(&mut node.shard, self.now, LOOKS);
                let from = worker_of(from);
                node.replica.receive(from, envelope, &mut slots, mono_us);
                assert!(!slots.refused);
            }
        }
        for node in &mut self.nodes {
            // Others' logs are their own.
            node.shard.journal().clear();
        }
    }

    /// A write at the head, which goes down the chain.
    fn write(&mut self, head: usize) {
        let (now, n) = (self.now, self.rng.below(300));
        let name = format!("{{{}}}:{n}", n % 5).into_bytes();
        let node = &mut self.nodes[head];
        assert_eq!(
            node.replica.serves(slot_of(&name), now.mono_us),
            Ok(()),
            "{:?}",
            node.replica.epoch()
        );
        let key = node.shard.key(&name);
        match self.rng.below(10) {
            0 => drop(node.shard.remove(0, key, now)),
            1 => {
                let to = format!("{{{}}}:{}", n % 5, self.rng.below(300)).into_bytes();
                let to = node.shard.key(&to);
                node.shard.rename((0, key), (0, to), now);
            }
            2 => drop(
                node.shard
                    .remove_book(slot_of(&name), &[n as u8 % 40; 18], now),
            ),
            3 | 4 => {
                let entry = vec![n as u8; self.rng.below(200_000) as usize];
                node.shard
                    .set_book(slot_of(&name), &[n as u8 % 40; 18], (&entry, b""), now);
            }
            5..7 => {
                let some: Vec<u32> = (0..self.rng.below(4000) as u32).collect();
                let _ = node.shard.update::<Set, _>(0, key, now, |editor| {
                    for n in some {
                        let member = &n.to_be_bytes()[..];
                        editor.apply(&SetOp::Add { member });
                    }
                });
            }
            _ => {
                let value = vec![n as u8; self.rng.below(200_000) as usize];
                let clear = ExpirySetting::Clear;
                node.shard.set(0, key, NewValue::Copy(&value), clear, now);
            }
        }
        let journal = std::mem::take(node.shard.journal());
        let mut rest = &journal[..];
        while !rest.is_empty() {
            let before = rest;
            let effect = Effect::decode(&mut rest).expect("effects");
            let slot = slot_of_effect(&effect).expect("of one slot");
            let bytes = &before[..before.len() - rest.len()];
            let mut slots = Slots::new(&mut node.shard, now, 0);
            node.replica.append(slot, bytes.into(), &mut slots);
        }
    }

    fn contents(&mut self, node: usize) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let shard = &mut self.nodes[node].shard;
        let books = shard.books();
        let books = books.map(|(slot, id, entry)| {
            (
                [&b"book of"[..], &slot.to_be_bytes(), &id].concat(),
                entry.to_vec(),
            )
        });
        let mut all: BTreeMap<Vec<u8>, Vec<u8>> = books.collect();
        let mut cursor = Some(0);
        while let Some(from) = cursor {
            cursor = shard.scan(0, from, 100, self.now, &mut |item| {
                let bytes = match &item.value.to_owned() {
                    OwnedValue::Object(object) => object.canonical(),
                    other => other.any().string().expect("a string").bytes().to_vec(),
                };
                all.insert(item.key.to_vec(), bytes);
            });
        }
        shard.check();
        all
    }

    fn until(&mut self, what: impl Fn(&Self) -> bool) {
        for _ in 0..200_000 {
            if what(self) {
                return;
            }
            self.step();
        }
        panic!("it takes too long");
    }

    fn serves(&self, node: usize) -> bool {
        let replica = &self.nodes[node].replica;
        (0..5).all(|n| {
            let slot = slot_of(format!("{{{n}}}").as_bytes());
            replica.serves(slot, self.now.mono_us).is_ok()
        })
    }
}

#[test]
fn slots_move_from_one_node_to_another_while_they_are_written() {
    for seed in 0..4 {
        let mut world = World::new(seed);
        world.agree(&[0], None);
        (0..200).for_each(|_| world.write(0));
        world.agree(&[0], Some(1));
        world.until(|world| world.serves(0));
        for _ in 0..150 {
            world.until(|world| world.serves(0));
            world.write(0);
            world.step();
        }
        // Also slots that were never written are learned.
        world.until(|world| world.nodes[0].replica.synced().count() == 16384);
        world.agree(&[0, 1], None);
        world.until(|world| world.serves(0));
        for _ in 0..50 {
            world.until(|world| world.serves(0));
            world.write(0);
        }
        let settled = |world: &World| {
            let replica = &world.nodes[0].replica;
            replica.settled() == replica.position()
        };
        world.until(settled);
        let there = world.contents(0);
        assert!(there.len() > 100, "{} keys", there.len());
        let entries = there.keys().filter(|name| name.starts_with(b"book of"));
        assert!(entries.count() > 20);
        assert_eq!(world.contents(1), there, "seed {seed}");
        world.agree(&[1], None);
        world.until(|world| world.serves(1));
        (0..20).for_each(|_| world.write(1));
        let (now, node) = (world.now, &mut world.nodes[0]);
        let mut works = true;
        while works {
            let mut slots = Slots::new(&mut node.shard, now, LOOKS);
            works = node.replica.work(&mut slots, 8, |_| true);
        }
        assert_eq!(world.contents(0), BTreeMap::new());
    }
}
