//! The world: a node, its clients, its disk and the time, driven by a heap of
//! events. Everything random comes from the seed, so that a seed gives the
//! same run each time.
//!
//! - here: the state, and the heap
//! - `life`: the node starts and ends
//! - `network`: bytes and messages in transit
//! - `users`: what clients do
//! - `end`: the final checks
//! - `scenario`: what the engine has to know of it
//! - `shapes`: packed and large collections, over restarts

mod end;
mod lattice;
mod life;
mod network;
mod queues;
mod saves;
mod scenario;
mod shapes;
mod users;

use crate::engine::clock::Clock;
use crate::engine::disk::Disk;
use crate::engine::random::Random;
use crate::engine::scenario::until;
use crate::engine::{Engine, Fault};
use crate::history::History;
use crate::node::client::Client;
use crate::node::lattice::Lattice;
use crate::node::plan::{Crash, Plan};
use crate::node::queues::Queues;
use crate::node::seat::Seat;
use crate::node::workload::{self, Unique};
use crate::oracle::promise::Modes;
use network::Link;
use rufous_base::Now;
use rufous_server::front::Message;
use rufous_server::front::shared::Shared;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// What can happen.
enum What {
    /// A worker takes a turn.
    Turn(usize),
    Message {
        from: usize,
        to: usize,
        message: Message,
    },
    DiskDone {
        worker: usize,
        lane: usize,
    },
    BytesToNode {
        link: usize,
        bytes: Vec<u8>,
    },
    /// The client sends no more (`false`), or is gone (`true`).
    LeftNode {
        link: usize,
        gone: bool,
    },
    BytesToClient {
        link: usize,
        bytes: Vec<u8>,
    },
    ClientLost {
        link: usize,
    },
    /// A client may do something.
    Act(usize),
    Jump(i64),
    Crash(Box<Crash>),
    Start {
        workers: usize,
    },
    /// A client waits for this time.
    Pause,
}

pub struct Event {
    /// The life of the node that it belongs to; `None`: it outlives it.
    life: Option<u32>,
    what: What,
}

/// What the node is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Power {
    Down,
    Up,
    /// This many workers have not stopped yet.
    Stopping(usize),
    /// It refused to start, or stopped by itself.
    Refused,
}

pub struct World {
    plan: Plan,
    fault: Fault,
    engine: Engine<Event>,
    life: u32,
    power: Power,
    clock: Clock,
    network: Random,
    turns: Random,
    chance: Random,
    seats: Vec<Seat>,
    shared: Option<Arc<Shared>>,
    links: Vec<Link>,
    /// Links by worker, slot and generation.
    places: BTreeMap<(usize, u32, u32), usize>,
    /// When the last message between two workers arrives.
    last_message_us: BTreeMap<(usize, usize), u64>,
    clients: Vec<Client>,
    /// Their numbers follow those of the other clients.
    queues: Queues,
    /// Likewise, behind them.
    lattice: Lattice,
    history: History,
    unique: Unique,
    disk: Disk,
    modes: Modes,
    crashes: VecDeque<Crash>,
    /// Operations that came to an end, well or not.
    finished: u64,
    /// Units that are still to be read by the operator.
    audit: Vec<usize>,
    /// The life of the node in which large keys were last written.
    ballast_of: u32,
    /// The workload is over: faults stop.
    calm: bool,
    flipped: bool,
    /// Collections that were large when the node ended, by unit and key.
    large: Vec<(usize, usize)>,
    /// The node was asked to stop when its log was on, or was being switched on.
    stop_keeps: bool,
    /// When the disk became full for the first time.
    full_since_us: Option<u64>,
}

/// Virtual time that the workload may take.
const WORK_LIMIT_US: u64 = 600_000_000;
/// Virtual time within which everything must finish without faults.
const CALM_LIMIT_US: u64 = 60_000_000;

impl World {
    fn new(plan: Plan, fault: Fault, mut engine: Engine<Event>) -> Self {
        engine.now_us = 1_000_000;
        let seed = plan.seed;
        let mut clients: Vec<_> = (0..plan.clients)
            .map(|n| Client::new(seed, n, plan.commands_per_client))
            .collect();
        // The last one is the operator.
        clients.push(Client::new(seed, plan.clients, 0));
        Self {
            fault,
            engine,
            life: 0,
            power: Power::Down,
            clock: Clock::default(),
            network: Random::new(seed, "network"),
            turns: Random::new(seed, "turns"),
            chance: Random::new(seed, "chance"),
            seats: Vec::new(),
            shared: None,
            links: Vec::new(),
            places: BTreeMap::new(),
            last_message_us: BTreeMap::new(),
            clients,
            queues: Queues::new(&plan),
            lattice: Lattice::new(&plan),
            history: History::new(workload::units(&plan)),
            unique: Unique::of(&plan),
            disk: Disk::new(seed, plan.disk.clone())
                .with_long_syncs(plan.has_long_syncs().then_some(seed)),
            modes: Modes::new(plan.mode),
            crashes: plan.crashes.iter().cloned().collect(),
            finished: 0,
            audit: Vec::new(),
            ballast_of: 0,
            calm: false,
            flipped: false,
            large: Vec::new(),
            stop_keeps: false,
            full_since_us: None,
            plan,
        }
    }

    fn script(&mut self) {
        self.start(self.plan.workers);
        let side = self.queues.clients.len() + self.lattice.clients.len();
        for client in 0..self.clients.len() + side {
            let at = self.engine.now_us + self.network.below(2_000);
            self.push(at, None, What::Act(client));
        }
        for (at, seconds) in self.plan.jumps.clone() {
            self.push(self.engine.now_us + at, None, What::Jump(seconds));
        }
        let limit = self.engine.now_us + WORK_LIMIT_US;
        self.until("the workload is done", limit, |w| {
            w.clients.iter().all(Client::is_done) && w.crashes.is_empty() && w.power == Power::Up
        });
        self.come_to_rest();
        self.look_at_everything("after the workload");
        self.end_and_start_again();
    }

    /// Lets things happen until something holds, or the node refuses to start.
    fn until(&mut self, what: &str, limit_us: u64, holds: impl Fn(&Self) -> bool) {
        if self.engine.has_failed() {
            return;
        }
        let ends = |world: &Self| world.power == Power::Refused || holds(world);
        if let Err(failure) = until(self, what, limit_us, ends) {
            self.engine.fail(failure);
        }
    }

    /// Lets some time pass.
    fn pass_us(&mut self, us: u64) {
        let at = self.engine.now_us + us;
        self.push(at, None, What::Pause);
        self.until("time has passed", u64::MAX, |w| w.engine.now_us >= at);
    }

    fn on_event(&mut self, Event { life, what }: Event) {
        let alive = matches!(self.power, Power::Up | Power::Stopping(_));
        if life.is_some_and(|life| !alive || life != self.life) {
            return;
        }
        match what {
            What::Turn(worker) => self.on_turn(worker),
            What::Message { from, to, message } => self.on_message(from, to, message),
            What::DiskDone { worker, lane } => self.on_disk_done(worker, lane),
            What::BytesToNode { link, bytes } => self.on_bytes_to_node(link, bytes),
            What::LeftNode { link, gone } => self.on_left_node(link, gone),
            What::BytesToClient { link, bytes } => self.on_bytes_to_client(link, &bytes),
            What::ClientLost { link } => self.on_client_lost(link),
            What::Act(client) => self.on_act(client),
            What::Jump(seconds) => self.on_jump(seconds),
            What::Crash(crash) => self.on_crash(&crash),
            What::Start { workers } => self.start(workers),
            What::Pause => {}
        }
    }

    fn push(&mut self, at_us: u64, life: Option<u32>, what: What) {
        self.engine.at(at_us, Event { life, what });
    }

    fn now(&self) -> Now {
        Now {
            mono_us: self.engine.now_us,
            unix_us: self.clock.unix_us(self.engine.now_us),
        }
    }

    fn fail(&mut self, what: String) {
        self.engine.fail(what);
    }

    fn on_jump(&mut self, seconds: i64) {
        if self.calm {
            return;
        }
        self.clock.jump(self.engine.now_us, seconds * 1_000_000);
        self.lattice.clock = self.clock.clone();
        self.engine.reach(match seconds {
            ..0 => "clock jumped back",
            _ => "clock jumped ahead",
        });
        self.engine
            .note("world", format_args!("the wall clock jumps by {seconds} s"));
    }

    /// Which clients wait, and for what.
    fn state(&self) -> String {
        let mut text = format!("  the node is {:?}\n", self.power);
        for (worker, seat) in self.seats.iter().enumerate() {
            text.push_str(&format!("  w{worker}: {}\n", seat.describe()));
        }
        for (number, client) in self.clients.iter().enumerate() {
            text.push_str(&format!(
                "  client {number}: {:?}, {} operations left, waits for {:?}\n",
                client.state,
                client.left,
                client
                    .awaited
                    .iter()
                    .map(|a| &a.record.op)
                    .collect::<Vec<_>>()
            ));
        }
        text
    }
}
