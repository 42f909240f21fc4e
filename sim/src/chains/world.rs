//! Time, and all that happens in it.

mod coordinator;
mod emptied;
mod moves;
mod trouble;

use super::SLOTS;
use super::clients::{Clients, Place};
use super::network::Network;
use super::node::{Node, Worker};
use super::oracle;
use super::plan::Plan;
use crate::engine::Engine;
use crate::engine::scenario::drain;
use coordinator::Coordinator;
use moves::Moves;
use rufous_base::rng::Rng;
use rufous_chain::Peer;
use rufous_mapping::NodeNo;
use std::collections::BTreeMap;

/// How long there is trouble, and how long quiet.
const TROUBLE_US: u64 = 30_000_000;
const QUIET_US: u64 = 30_000_000;

/// All nodes take a step.
#[derive(Debug)]
pub struct Step;

pub struct World {
    pub(super) engine: Engine<Step>,
    /// Until when steps go on.
    until_us: u64,
    rng: Rng,
    nodes: BTreeMap<NodeNo, Node>,
    network: Network,
    coordinator: Coordinator,
    pub(super) clients: Clients,
    faults: bool,
    /// A node drains and nothing fails.
    moves: Option<Moves>,
    /// What is drawn for folders.
    folders: Rng,
    /// A folder was emptied, or put back as it was, already.
    spoilt: bool,
}

impl World {
    pub(super) fn new(plan: Plan, engine: Engine<Step>) -> Self {
        let mut nodes = BTreeMap::new();
        for (n, planned) in plan.nodes.iter().enumerate() {
            let no = NodeNo(n as u16);
            let mut node = Node::new(no, planned);
            node.announced = n <= plan.copies;
            nodes.insert(no, node);
        }
        let mut network = Network::new(plan.network);
        for node in nodes.values() {
            network.has_workers(node.no, node.count());
        }
        let (copies, count) = (plan.copies, plan.nodes.len());
        let mut world = Self {
            engine,
            until_us: 0,
            network,
            coordinator: Coordinator::new(copies, &nodes),
            nodes,
            clients: Clients::default(),
            faults: true,
            moves: None,
            folders: Rng::new(plan.network.rotate_left(17)),
            spoilt: false,
            rng: plan.rng,
        };
        let workers: Vec<u16> = world.nodes.values().map(Node::count).collect();
        world.note(format_args!(
            "{copies} copies, {count} nodes with {workers:?} workers"
        ));
        world.plan();
        world
    }

    /// Trouble, quiet, the judgement of both, a drain without trouble, and the loss of all copies of a slot.
    pub(super) fn run_all(&mut self) -> Result<(), String> {
        self.run(TROUBLE_US)?;
        self.quieten();
        self.run(self.engine.now_us + QUIET_US)?;
        self.judge()?;
        self.drain_one()?;
        self.lose_all_copies()
    }

    fn run(&mut self, until_us: u64) -> Result<(), String> {
        self.until_us = until_us;
        self.schedule_step();
        drain(self, u64::MAX, |_| false)
    }

    fn schedule_step(&mut self) {
        if self.engine.now_us < self.until_us {
            let us = 1_000 + self.rng.below(9_000);
            self.engine.after(us, Step);
        }
    }

    pub(super) fn on_step(&mut self) {
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
        self.clients.settle(self.engine.now_us, &mut self.nodes);
        let is_away = self.engine.now_us < self.coordinator.away_until;
        if is_away && self.clients.acknowledged > before {
            self.reach("writes went on without the coordinator");
        }
        match self.only_one_answers().and_then(|()| self.all_are_served()) {
            Ok(()) => self.schedule_step(),
            Err(failure) => self.engine.fail(failure),
        }
    }

    fn step(&mut self, no: NodeNo) {
        let Some(node) = self
            .nodes
            .get_mut(&no)
            .filter(|node| node.runs(self.engine.now_us))
        else {
            return;
        };
        let (local, count) = (node.clock(self.engine.now_us), node.count());
        let mut waits = false;
        for (worker, n) in node.workers.iter_mut().zip(0..) {
            if !worker.runs(self.engine.now_us) {
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
                self.network.send(me, to, envelope, self.engine.now_us);
            }
        }
        if waits {
            self.reach("a lease had to be outwaited");
        }
    }

    fn deliver(&mut self) {
        for (from, to, what) in self.network.due(self.engine.now_us) {
            let Some(node) = self.nodes.get_mut(&to.node) else {
                continue;
            };
            let at = usize::from(to.worker);
            if !node.runs(self.engine.now_us) || !node.workers[at].runs(self.engine.now_us) {
                // It waits in the link until the node runs again, or is gone.
                if node.is_up {
                    self.network.put_back(from, to, what, self.engine.now_us);
                }
                continue;
            }
            let local = node.clock(self.engine.now_us);
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

    /// No two nodes answer for a slot at the same time, even if one pauses
    /// while its clock goes on.
    fn only_one_answers(&mut self) -> Result<(), String> {
        let mut overtaken = false;
        for slot in SLOTS {
            let answers = |node: &&Node| {
                let local = node.clock(self.engine.now_us);
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
                    self.engine.now_us
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
                if !replica.may_read(slot, node.clock(self.engine.now_us)) {
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

    pub(super) fn epoch(&self) -> u64 {
        self.coordinator.mapping.epoch
    }

    /// What clients saw, and what each list was after quiet.
    pub fn histories(&self) -> BTreeMap<Place, (Vec<oracle::Operation>, Vec<u32>)> {
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

    fn reach(&mut self, probe: &'static str) {
        self.engine.reach(probe);
    }

    fn note(&mut self, what: std::fmt::Arguments<'_>) {
        self.engine.note("world", what);
    }
}
