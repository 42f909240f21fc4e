//! Time, and what happens in it.

use super::clients::{Client, Door};
use super::coordinator::Coordinator;
use super::fleeting::Fleeting;
use super::loose::Loose;
use super::node::Node;
use super::pairs::Pairs;
use super::plan::Plan;
use super::stops::Stops;
use super::strangers::Strangers;
use super::watch::Watch;
use super::wires::Wire;
use crate::engine::random::Random;
use crate::engine::scenario::until;
use crate::engine::{Engine, Fault};
use crate::history::History;
use crate::node::seat::{Arrival, Left};
use crate::node::workload::Unique;
use rufous_base::DialError;
use rufous_mapping::Mapping;
use rufous_server::front::Message;
use std::collections::BTreeMap;
use std::sync::Arc;

/// When troubles begin.
pub(super) const TROUBLES_US: u64 = 3_000_000;

/// What can happen.
pub(super) enum What {
    /// A worker takes a turn.
    Turn(usize),
    /// What a worker's turn has left leaves: the node was stopped before.
    Leaves(usize, Box<Left>),
    Message {
        from: usize,
        to: usize,
        message: Message,
    },
    DiskDone {
        worker: usize,
        lane: usize,
    },
    Deliver {
        wire: usize,
        to: usize,
    },
    /// A wish for a connection comes to the other node.
    Dialled {
        node: usize,
        worker: usize,
        life: u32,
        to: usize,
        token: u64,
        until: u64,
    },
    Undialled {
        worker: usize,
        token: u64,
        error: DialError,
    },
    GivenUp {
        wire: usize,
        token: u64,
    },
    Tell {
        worker: usize,
        mapping: Arc<Mapping>,
    },
    Act(usize),
    Coordinate,
    Watch,
    Trouble,
    /// A process without the secret connects to a node.
    Stranger,
    /// Links are parted again, so often.
    Flap(Vec<(usize, usize)>, usize),
    Start(usize),
    /// All nodes lose power.
    Loss,
}

pub struct Event {
    /// The node and its life that it belongs to.
    of: Option<(usize, u32)>,
    what: What,
}

pub struct World {
    pub(super) plan: Plan,
    pub(super) fault: Fault,
    pub(super) engine: Engine<Event>,
    pub(super) nodes: Vec<Node>,
    pub(super) wires: Vec<Wire>,
    /// Wires and their ends, by node, worker, slot and generation.
    pub(super) places: BTreeMap<(usize, usize, u32, u32), (usize, usize)>,
    /// Until when nothing gets from a node to another.
    pub(super) parted: BTreeMap<(usize, usize), u64>,
    pub(super) coordinator: Coordinator,
    pub(super) clients: Vec<Client>,
    pub(super) strangers: Strangers,
    pub(super) history: History,
    pub(super) loose: Loose,
    pub(super) fleeting: Fleeting,
    pub(super) pairs: Pairs,
    /// Keys that may have outcomes of transactions.
    pub(super) tokens: Vec<String>,
    pub(super) watch: Watch,
    pub(super) stops: Stops,
    /// When a request or a change of a node was last pending.
    pub(super) unrest_us: u64,
    /// Operations that are over, and a number for each value.
    pub(super) operations: u64,
    pub(super) values: u64,
    pub(super) unique: Unique,
    /// Faults are over.
    pub(super) calm: bool,
    pub(super) network: Random,
    pub(super) turns: Random,
    pub(super) chance: Random,
}

/// Within so much virtual time everything must come to rest.
const CALM_LIMIT_US: u64 = 120_000_000;

impl World {
    pub(super) fn new(plan: Plan, fault: Fault, engine: Engine<Event>) -> Self {
        let seed = plan.seed;
        let mut random = Random::new(seed, "nodes");
        let nodes = (0..plan.workers.len()).map(|n| Node::new(n, &plan, &mut random));
        // The last one reads everything at the end.
        let door = |n: usize| match n < plan.plain {
            true => Door::Plain,
            false => Door::Redirecting,
        };
        let clients = (0..=plan.clients).map(|n| Client::new(seed, n, door(n)));
        Self {
            nodes: nodes.collect(),
            clients: clients.collect(),
            strangers: Strangers::new(seed),
            fault,
            history: History::new(plan.units()),
            loose: Loose::default(),
            fleeting: Fleeting::default(),
            pairs: Pairs::default(),
            tokens: Vec::new(),
            watch: Watch::new(&plan),
            stops: Stops::new(&plan),
            unrest_us: 0,
            coordinator: Coordinator::new(&plan),
            engine,
            wires: Vec::new(),
            places: BTreeMap::new(),
            parted: BTreeMap::new(),
            operations: 0,
            values: 0,
            unique: plan.unique(),
            calm: false,
            network: Random::new(seed, "network"),
            turns: Random::new(seed, "turns"),
            chance: Random::new(seed, "chance"),
            plan,
        }
    }

    /// Trouble, quiet, and the judgement of both.
    pub(super) fn run_all(&mut self) -> Result<(), String> {
        let plan = format!("{:?}", self.plan);
        self.note("world", format_args!("{plan}"));
        for node in 0..self.plan.first {
            let at = self.chance.below(100_000);
            self.push(at, None, What::Start(node));
        }
        self.push(0, None, What::Coordinate);
        self.push(0, None, What::Watch);
        self.push(TROUBLES_US, None, What::Trouble);
        if self.plan.has_secret() {
            self.push(1_000_000, None, What::Stranger);
        }
        for at in self.plan.losses_us() {
            self.push(at, None, What::Loss);
        }
        for client in 0..self.plan.clients {
            let at = self.chance.below(1_000_000);
            self.push(at, None, What::Act(client));
        }
        let over_us = TROUBLES_US + self.plan.trouble_us;
        until(self, "trouble is over", u64::MAX, |world: &Self| {
            world.engine.now_us >= over_us
        })?;
        self.quieten();
        let limit = self.engine.now_us + CALM_LIMIT_US;
        until(self, "all are at rest", limit, World::is_at_rest)?;
        until(self, "it is quiet", limit, World::is_quiet)?;
        self.read_everything();
        let limit = self.engine.now_us + CALM_LIMIT_US;
        until(self, "all is read", limit, |world: &Self| {
            world.auditor().is_done()
        })?;
        let settled = self.engine.now_us + 2_000_000;
        until(self, "nothing waits", u64::MAX, |world: &Self| {
            world.engine.now_us >= settled
        })?;
        self.judge()
    }

    pub(super) fn on_event(&mut self, event: Event) {
        let happens = |(node, life): (usize, u32)| self.nodes[node].life == life;
        if event.of.is_none_or(happens) {
            self.happen(event.of.map_or(0, |(node, _)| node), event.what);
        }
    }

    fn happen(&mut self, node: usize, what: What) {
        match what {
            What::Turn(worker) => self.on_turn(node, worker),
            What::Leaves(worker, left) => self.leave(node, worker, *left),
            What::Message { from, to, message } => {
                let from = rufous_base::WorkerId(from as u16);
                self.arrive(node, to, Arrival::Message(from, message));
            }
            What::DiskDone { worker, lane } => self.on_disk_done(node, worker, lane),
            What::Deliver { wire, to } => self.on_deliver(wire, to),
            What::Dialled {
                node,
                worker,
                life,
                to,
                token,
                until,
            } => self.on_dialled((node, worker, life), to, token, until),
            What::Undialled {
                worker,
                token,
                error,
            } => self.arrive(node, worker, Arrival::Undialled(token, error)),
            What::GivenUp { wire, token } => self.on_given_up(node, wire, token),
            What::Tell { worker, mapping } => self.on_tell(node, worker, mapping),
            What::Act(client) => self.on_act(client),
            What::Coordinate => self.on_coordinate(),
            What::Watch => self.on_watch(),
            What::Flap(links, left) => self.on_flap(links, left),
            What::Trouble => self.on_trouble(),
            What::Stranger => self.on_stranger(),
            What::Start(node) => self.start(node),
            What::Loss => self.on_loss(),
        }
    }

    pub(super) fn push(&mut self, at_us: u64, of: Option<(usize, u32)>, what: What) {
        self.engine.at(at_us, Event { of, what });
    }

    /// Likewise, of a node in its present life.
    pub(super) fn push_of(&mut self, node: usize, at_us: u64, what: What) {
        let life = self.nodes[node].life;
        self.push(at_us, Some((node, life)), what);
    }

    pub(super) fn fail(&mut self, what: String) {
        self.engine.fail(what);
    }

    pub(super) fn note(&mut self, who: &str, what: std::fmt::Arguments<'_>) {
        self.engine.note(who, what);
    }

    pub(super) fn reach(&mut self, probe: &'static str) {
        self.engine.reach(probe);
    }

    /// Which clients and nodes wait, and for what.
    pub(super) fn state(&self) -> String {
        let mut text = self.coordinator.describe();
        for node in &self.nodes {
            text.push_str(&format!("  node {}: {:?}\n", node.index, node.power));
            for (worker, seat) in node.seats.iter().enumerate() {
                let figures = seat.front.kernel.chain_figures();
                let what = seat.describe();
                text.push_str(&format!("    w{worker}: {what}\n      {figures:?}\n"));
            }
        }
        for (number, client) in self.clients.iter().enumerate() {
            text.push_str(&format!("  client {number}: {}\n", client.describe()));
        }
        text
    }
}
