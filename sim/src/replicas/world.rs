//! Events of the world of replicas, in their order.

mod acts;
mod quiet;

use super::client::{Client, name_of, text_of};
use super::history::{Event as Asked, History, Outcome, What};
use super::node::{Node, Reply, Said};
use super::oracle;
use super::plan::{Mode, Plan};
use super::shared::Shared;
use super::wires::{Packet, Wires};
use crate::engine::random::Random;
use crate::engine::scenario::drain;
use crate::engine::{Engine, Fault};
use rufous_kernel::shard::{ExpirySetting, NewValue};

/// A run that has more is one that does not end.
const MOST_EVENTS: u64 = 4_000_000;

#[derive(Debug)]
pub enum Event {
    Packet(Packet),
    Poll(usize),
    Sync(usize),
    Client(usize),
    Part,
    Heal,
    Crash,
    Save,
}

/// See the module's description.
pub struct World {
    pub(super) plan: Plan,
    pub(super) fault: Fault,
    pub(super) engine: Engine<Event>,
    pub history: History,
    pub(super) shared: Shared,
    pub(super) nodes: Vec<Node>,
    wires: Wires,
    clients: Vec<Client>,
    random: Random,
    sessions: usize,
    /// How many crashes there were.
    life: u64,
    serving: bool,
}

impl World {
    pub(super) fn new(plan: Plan, fault: Fault, mut engine: Engine<Event>) -> Self {
        engine.now_us = 1_000_000;
        Self {
            fault,
            engine,
            history: History::default(),
            shared: Shared::default(),
            nodes: (0..plan.nodes).map(|n| Node::new(&plan, n)).collect(),
            wires: Wires::new(&plan),
            clients: Vec::new(),
            random: Random::new(plan.seed, "replicas' clients"),
            sessions: 1,
            life: 0,
            serving: true,
            plan,
        }
    }

    pub(super) fn run(&mut self) -> Result<(), String> {
        self.write_all();
        self.settle()?;
        for client in 0..self.plan.clients {
            let home = self.first_home(client);
            let session = self.new_session();
            self.clients.push(Client::new(&self.plan, session, home));
            assert_eq!(self.clients.len(), client + 1);
        }
        for _ in 0..self.plan.rounds {
            self.begin_round();
            drain(self, MOST_EVENTS, World::is_at_rest)?;
            self.settle()?;
        }
        match self.plan.mode {
            Mode::Shared => Ok(()),
            mode => oracle::judge(mode, self.plan.spread == 0 && self.plan.stay, &self.history),
        }
    }

    /// How many there were.
    pub(super) fn operations(&self) -> u64 {
        (self.history.len() + self.shared.len()) as u64
    }

    fn first_home(&mut self, client: usize) -> usize {
        let any = self.random.index(self.plan.nodes);
        self.plan.places.get(client).map_or(any, |(home, _)| *home)
    }

    fn new_session(&mut self) -> usize {
        self.sessions += 1;
        self.sessions - 1
    }

    /// The first write of every register.
    fn write_all(&mut self) {
        for key in 0..self.plan.keys {
            let name = name_of(key);
            let at = self.nodes[key % self.plan.nodes].placement.owner(&name);
            let value = self.history.new_value();
            let event = self.history.ask(Asked {
                session: 0,
                transaction: None,
                key,
                what: What::Write(value),
                replied: false,
            });
            self.set(at.index(), key, value, 0, None);
            self.say(at.index(), Said::Reply(Reply::Event(event)));
        }
    }

    fn set(
        &mut self,
        at: usize,
        key: usize,
        value: u64,
        floor: u64,
        stamp: Option<rufous_lattice::Stamp>,
    ) -> rufous_lattice::Stamp {
        let (name, text) = (name_of(key), text_of(value));
        let next = self.nodes[at].write(self.engine.now_us, floor, stamp, |shard, now| {
            let key = shard.key(&name);
            let value = NewValue::Copy(&text);
            shard.set(0, key, value, ExpirySetting::Clear, now);
        });
        self.end_turn(at);
        next
    }

    fn begin_round(&mut self) {
        self.wires.calm(false);
        let plan = &self.plan;
        let long = plan.operations * (plan.think_us + plan.sync_us) / 2 + 1;
        for client in 0..self.clients.len() {
            self.clients[client].left = self.plan.operations;
            let after = self.random.between(1, self.plan.think_us);
            self.after(after, Event::Client(client));
        }
        if self.random.chance(self.plan.partition) {
            let (begin, last) = (self.random.below(long), self.random.between(1, long));
            self.after(begin, Event::Part);
            self.after(begin + last, Event::Heal);
        }
        if self.random.chance(self.plan.crash) {
            let at = self.random.between(1, long);
            self.after(at, Event::Crash);
        }
        if self.random.chance(self.plan.snapshot) {
            let at = self.random.between(1, long);
            self.after(at, Event::Save);
        }
    }

    fn is_at_rest(&self) -> bool {
        let rests = |client: &Client| client.left == 0 && !client.waits;
        self.clients.iter().all(rests)
    }

    fn after(&mut self, us: u64, event: Event) {
        self.engine.after(us, event);
    }

    pub(super) fn on_event(&mut self, event: Event) {
        match event {
            Event::Packet(packet) => self.on_packet(packet),
            Event::Poll(at) => {
                if self.nodes[at].wake_us == Some(self.engine.now_us) {
                    self.nodes[at].wake_us = None;
                    self.end_turn(at);
                }
            }
            Event::Sync(at) => self.on_sync(at),
            Event::Client(client) => self.on_client(client),
            Event::Part => self.wires.part(),
            Event::Heal => self.wires.heal(),
            Event::Crash => self.on_crash(),
            Event::Save => self.on_save(),
        }
        self.end_start();
    }

    fn on_packet(&mut self, packet: Packet) {
        let to = packet.to;
        match self.wires.arrive(&self.plan, packet) {
            Err((again, packet)) => self.after(again, Event::Packet(packet)),
            Ok(ready) => {
                for bytes in ready {
                    let what = format_args!("takes {} bytes", bytes.len());
                    self.engine.note(to, what);
                    self.nodes[to].receive(self.engine.now_us, bytes);
                }
                self.end_turn(to);
            }
        }
    }

    /// Takes a node's replication further; has it polled when it wants to be,
    /// and its log written.
    fn end_turn(&mut self, at: usize) {
        self.nodes[at].poll(self.engine.now_us);
        let wanted = self.nodes[at].wants(self.engine.now_us);
        if let Some(wake) = wanted
            && self.nodes[at].wake_us.is_none_or(|known| known > wake)
        {
            self.nodes[at].wake_us = Some(wake);
            self.after(wake - self.engine.now_us, Event::Poll(at));
        }
        if self.nodes[at].has_said() && !self.nodes[at].sync_is_due {
            self.nodes[at].sync_is_due = true;
            let after = self.random.between(1, self.plan.sync_us);
            self.after(after, Event::Sync(at));
        }
    }

    fn say(&mut self, at: usize, said: Said) {
        self.nodes[at].say(said);
        self.end_turn(at);
    }

    fn on_sync(&mut self, at: usize) {
        // One that was due may have been done before its time.
        self.nodes[at].sync_is_due = false;
        for said in self.nodes[at].sync() {
            match said {
                Said::Message(to, bytes) => {
                    for (after, packet) in self.wires.send(&self.plan, (at, to), bytes) {
                        self.after(after, Event::Packet(packet));
                    }
                }
                Said::Reply(reply) => self.on_reply(reply),
            }
        }
    }

    fn on_reply(&mut self, reply: Reply) {
        let session = match reply {
            Reply::Event(event) => {
                self.history.reply(event);
                self.history.events[event].session
            }
            Reply::Shared(event) => self.shared.reply(event),
            Reply::Commit(number) => self.on_commit(number),
        };
        let found = self.clients.iter().position(|c| c.session == session);
        if let Some(client) = found {
            self.clients[client].waits = false;
            let think = self.random.between(1, self.plan.think_us);
            self.after(think, Event::Client(client));
        }
    }

    fn on_commit(&mut self, number: usize) -> usize {
        self.history.transactions[number] = Outcome::Committed;
        let mut session = 0;
        for client in &mut self.clients {
            let ends = |t: &mut super::client::Transaction| t.number == number;
            if let Some(ended) = client.transaction.take_if(ends) {
                session = client.session;
                ended
                    .pending
                    .into_iter()
                    .for_each(|e| self.history.reply(e));
            }
        }
        session
    }

    /// All power fails, and comes back. Connections are gone, and with them
    /// sessions.
    fn on_crash(&mut self) {
        self.life += 1;
        self.engine.note("all", format_args!("crash"));
        self.wires.reset();
        self.serving = false;
        for node in &mut self.nodes {
            node.restart(self.life);
        }
        for at in 0..self.nodes.len() {
            self.end_turn(at);
        }
        for client in 0..self.clients.len() {
            let home = self.first_home(client);
            let session = self.new_session();
            let old = &mut self.clients[client];
            let (left, waited) = (old.left, old.waits);
            *old = Client::new(&self.plan, session, home);
            old.left = left;
            // Those that do not wait have an event of their own to come.
            if waited {
                self.after(1, Event::Client(client));
            }
        }
    }

    /// All nodes make snapshots as of one instant, and these count together.
    /// What one has forgotten must not be in the snapshot of another.
    fn on_save(&mut self) {
        // No node has all that counts before it serves.
        if !self.serving {
            return self.after(self.plan.save_us, Event::Save);
        }
        let is_new = !self.nodes.iter().any(Node::is_saving);
        for at in 0..self.nodes.len() {
            if is_new {
                self.on_sync(at);
                self.nodes[at].begin_snapshot();
            }
        }
        let mut complete = true;
        for node in &mut self.nodes {
            complete &= node.save_on(self.plan.save_bytes);
        }
        if complete {
            self.nodes.iter_mut().for_each(Node::adopt_snapshot);
        } else {
            self.after(self.plan.save_us, Event::Save);
        }
    }

    /// After a crash no client is served before all nodes have exchanged their state
    /// and have applied what all files contain together.
    fn end_start(&mut self) {
        if self.serving || !self.nodes.iter_mut().all(Node::has_exchanged) {
            return;
        }
        self.serving = true;
        let files: Vec<_> = self.nodes.iter_mut().filter_map(Node::take_held).collect();
        for node in &mut self.nodes {
            node.bring_back(self.engine.now_us, &files);
        }
        for at in 0..self.nodes.len() {
            self.end_turn(at);
        }
    }
}
