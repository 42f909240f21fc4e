//! Time, and all that happens in it.

mod coordinator;
mod trouble;

use super::clients::{Clients, mixed};
use super::faults::Fault;
use super::network::Network;
use super::node::{Node, Worker};
use super::oracle;
use super::{PROBES, Report, SLOTS};
use coordinator::Coordinator;
use rufous_base::rng::Rng;
use rufous_chain::Peer;
use rufous_mapping::NodeNo;
use std::collections::BTreeMap;

/// How long there is trouble, and how long quiet.
const TROUBLE_US: u64 = 30_000_000;
const QUIET_US: u64 = 30_000_000;

pub(super) struct World {
    now: u64,
    rng: Rng,
    nodes: BTreeMap<NodeNo, Node>,
    network: Network,
    coordinator: Coordinator,
    clients: Clients,
    faults: bool,
    probes: BTreeMap<&'static str, u64>,
    verbose: bool,
    lines: Vec<String>,
}

impl World {
    pub(super) fn new(seed: u64, fault: Fault, verbose: bool) -> Self {
        let mut rng = Rng::new(mixed(seed));
        let copies = 1 + rng.below(3) as usize;
        let count = copies as u64 + 1 + rng.below(3);
        let mut nodes = BTreeMap::new();
        for n in 0..count as u16 {
            let mut node = Node::new(NodeNo(n), fault.drift(), &mut rng);
            node.announced = n <= copies as u16;
            nodes.insert(NodeNo(n), node);
        }
        let mut network = Network::new(rng.next_u64());
        for node in nodes.values() {
            network.has_workers(node.no, node.count());
        }
        let mut world = Self {
            now: 0,
            network,
            coordinator: Coordinator::new(copies, &nodes),
            nodes,
            clients: Clients::default(),
            faults: true,
            rng,
            probes: BTreeMap::new(),
            verbose,
            lines: Vec::new(),
        };
        world.note(|world| {
            let workers: Vec<u16> = world.nodes.values().map(Node::count).collect();
            format!("{copies} copies, {count} nodes with {workers:?} workers")
        });
        world.plan();
        world
    }

    /// Trouble, quiet, and the judgement of both.
    pub(super) fn run_all(&mut self) -> Result<(), String> {
        self.run(TROUBLE_US)?;
        self.quieten();
        self.run(self.now + QUIET_US)?;
        self.judge()
    }

    fn run(&mut self, until: u64) -> Result<(), String> {
        while self.now < until {
            self.now += 1_000 + self.rng.below(9_000);
            if self.faults {
                self.trouble();
            }
            self.coordinate();
            self.deliver();
            let numbers: Vec<NodeNo> = self.nodes.keys().copied().collect();
            for no in numbers {
                self.step(no);
            }
            let before = self.clients.acknowledged;
            self.clients.settle(self.now, &mut self.nodes);
            if self.now < self.coordinator.away_until && self.clients.acknowledged > before {
                self.reach("writes went on without the coordinator");
            }
            self.only_one_answers()?;
        }
        Ok(())
    }

    fn step(&mut self, no: NodeNo) {
        let Some(node) = self.nodes.get_mut(&no).filter(|node| node.runs(self.now)) else {
            return;
        };
        let (local, count) = (node.clock(self.now), node.count());
        let mut waits = false;
        for (worker, n) in node.workers.iter_mut().zip(0..) {
            if !worker.runs(self.now) {
                continue;
            }
            let me = Peer {
                node: no,
                worker: n,
            };
            if worker.replica.wake_at() <= local {
                worker.replica.tick(local);
            }
            if self.rng.below(8) == 0 {
                // Slowly: much can happen to a copy.
                let network = &self.network;
                let has_room = |to| network.is_up(no, to);
                worker.replica.work(&mut worker.store, 2, has_room);
            }
            waits |= worker.replica.outwaits();
            self.clients.act((me, count), worker, local, &mut self.rng);
            for (to, envelope) in worker.replica.take_messages() {
                self.network.send(me, to, envelope, self.now);
            }
        }
        if waits {
            self.reach("a lease had to be outwaited");
        }
    }

    fn deliver(&mut self) {
        for (from, to, what) in self.network.due(self.now) {
            let Some(node) = self.nodes.get_mut(&to.node) else {
                continue;
            };
            let at = usize::from(to.worker);
            if !node.runs(self.now) || !node.workers[at].runs(self.now) {
                // It waits in the link until the node runs again, or is gone.
                if node.is_up {
                    self.network.put_back(from, to, what, self.now);
                }
                continue;
            }
            let local = node.clock(self.now);
            let Worker { replica, store, .. } = &mut node.workers[at];
            match what {
                Some((worker, envelope)) => {
                    let from = Peer { node: from, worker };
                    replica.receive(from, envelope, store, local);
                }
                None => replica.peer_up(from),
            }
        }
    }

    /// At no time two nodes would answer for a slot, even one that pauses and
    /// whose clock goes on.
    fn only_one_answers(&mut self) -> Result<(), String> {
        let mut overtaken = false;
        for slot in SLOTS {
            let answers = |node: &&Node| {
                let local = node.clock(self.now);
                node.is_up && node.worker(slot).replica.serves(slot, local).is_ok()
            };
            let nodes: Vec<NodeNo> = self.nodes.values().filter(answers).map(|n| n.no).collect();
            let node = nodes.first().and_then(|no| self.nodes.get(no));
            overtaken |= node.is_some_and(|node| {
                let since = |worker: &Worker| {
                    let mapping = worker.replica.mapping();
                    mapping.map_or(0, |mapping| mapping.chains.of(slot).since)
                };
                let acts = since(node.worker(slot));
                node.workers.iter().any(|worker| since(worker) > acts)
            });
            if nodes.len() > 1 {
                return Err(format!(
                    "{nodes:?} all answer for slot {slot} at {}",
                    self.now
                ));
            }
        }
        if overtaken {
            self.reach("a worker answered by an epoch that was over for the one beside it");
        }
        Ok(())
    }

    /// After quiet everything is where it is to be, and alike.
    fn judge(&mut self) -> Result<(), String> {
        for slot in SLOTS {
            let mapping = &self.coordinator.mapping;
            let (chain, wanted) = (mapping.chains.of(slot), mapping.ring.owners(slot));
            if *chain.members != *wanted || wanted.is_empty() {
                let nodes = chain.named().filter_map(|no| self.nodes.get(&no));
                let states: Vec<String> = nodes
                    .map(|n| format!("{:?}", n.worker(slot).replica))
                    .collect();
                return Err(format!(
                    "slot {slot} is not at rest: {chain:?}, wanted {wanted:?}\n{}",
                    states.join("\n")
                ));
            }
            let lists = self.nodes[&wanted[0]].worker(slot).store.lists(slot);
            for no in wanted {
                let node = &self.nodes[no];
                let Worker { replica, store, .. } = node.worker(slot);
                if store.lists(slot) != lists {
                    return Err(format!("{no} and {} differ in slot {slot}", wanted[0]));
                }
                if !replica.may_read(slot, node.clock(self.now)) {
                    return Err(format!("{no} waits in slot {slot}: {replica:?}"));
                }
            }
        }
        for ((slot, key), (operations, list)) in self.histories() {
            oracle::judge(&operations, &list)
                .map_err(|failure| format!("slot {slot}, key {key}: {failure}"))?;
            let unknown = |o: &oracle::Operation| match o.what {
                oracle::What::Append(value) => o.ended.is_none() && list.contains(&value),
                oracle::What::Read(_) => false,
            };
            if operations.iter().any(unknown) {
                self.reach("an unknown append was there");
            }
        }
        Ok(())
    }

    fn histories(&self) -> BTreeMap<super::Place, (Vec<oracle::Operation>, Vec<u32>)> {
        let all = self.clients.operations.iter().map(|(place, operations)| {
            let head = self.coordinator.mapping.chains.of(place.0).head();
            let node = head.and_then(|no| self.nodes.get(&no));
            let list = node.map_or(Vec::new(), |node| {
                node.worker(place.0).store.list(place.0, place.1)
            });
            (*place, (operations.clone(), list))
        });
        all.collect()
    }

    pub(super) fn report(&mut self) -> Report {
        Report {
            failure: None,
            epochs: self.coordinator.mapping.epoch,
            acknowledged: self.clients.acknowledged,
            reads: self.clients.reads,
            probes: std::mem::take(&mut self.probes),
            hash: mixed(self.clients.hash ^ self.coordinator.mapping.epoch),
            lines: std::mem::take(&mut self.lines),
            histories: self.histories(),
        }
    }

    fn reach(&mut self, probe: &'static str) {
        debug_assert!(PROBES.contains(&probe), "{probe}");
        *self.probes.entry(probe).or_default() += 1;
    }

    fn note(&mut self, what: impl FnOnce(&Self) -> String) {
        if self.verbose {
            let line = format!("{:>10} {}", self.now, what(self));
            self.lines.push(line);
        }
    }
}
