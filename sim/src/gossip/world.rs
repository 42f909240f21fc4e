//! Nodes, sessions between them, and events in their order.

mod beside;
mod members;
mod quiet;
mod saves;
mod sessions;
mod walkers;

use super::deeds::{Deeds, Place};
use super::plan::{Mode, Plan};
use super::seat::{Said, Seat, View};
use super::side::Side;
use super::texts::Texts;
use crate::engine::random::Random;
use crate::engine::scenario::drain;
use crate::engine::{Engine, Fault};
use rufous_base::limits::{MAX_STAMP_LEAD_US, REPORT_RESERVE_US};
use rufous_kernel::replicate::gossip::{Figures, Peer, Sent};
use std::collections::BTreeMap;
use std::sync::Arc;

const MOST_EVENTS: u64 = 400_000;

#[derive(Debug)]
pub enum Event {
    /// Of a worker of a node in one of its lives.
    Poll((usize, usize), usize),
    Sync((usize, usize), usize),
    Adopt((usize, usize), usize, View),
    Here((usize, usize), usize, Arc<[u8]>),
    Net {
        session: u64,
        from: (u16, u16),
        to: (usize, u16),
        peer: Peer,
    },
    Client,
    Break(usize, usize),
    Connect(usize, usize),
    Crash(usize),
    /// A node goes away for long, and the others are looked at.
    Part(usize),
    Look(usize),
    /// A node that does not serve yet looks for nodes that are away.
    Excuse(usize, usize),
    Save(usize, usize),
    Start(usize),
    Drop(usize),
    Rejoin(usize),
}

#[derive(Debug)]
struct Node {
    number: u16,
    /// Of all members that ever were.
    member: usize,
    /// Rises with every start.
    life: usize,
    seats: Vec<Seat>,
    logs: Vec<Vec<u8>>,
    is_running: bool,
    has_exchanged: bool,
    /// Workers of which the logs have what all others had.
    heard: usize,
    serves: bool,
    /// By this number, in this life or in one before.
    has_served: bool,
}

/// One between two nodes, of which the worker has the connection.
#[derive(Clone, Copy, Debug)]
struct Session {
    number: u64,
    workers: (usize, usize),
}

#[derive(Debug)]
pub struct World {
    pub(super) engine: Engine<Event>,
    plan: Plan,
    fault: Fault,
    random: Random,
    nodes: Vec<Node>,
    sessions: BTreeMap<(usize, usize), Session>,
    view: View,
    deeds: Deeds,
    /// In their place, where the plan has sessions.
    texts: Option<Texts>,
    /// Where the plan has a second keyspace.
    side: Option<Side>,
    /// In the place of readers that stay, where the plan has some that do not.
    walkers: Vec<walkers::Walker>,
    /// Sessions of these.
    begun: usize,
    /// When the last message on a way arrives.
    ways: BTreeMap<(usize, usize, usize, usize), u64>,
    left: u64,
    numbers: u64,
    members: usize,
    lives: usize,
    /// Of streams of workers that are gone.
    past: Figures,
}

fn pair(a: usize, b: usize) -> (usize, usize) {
    (a.min(b), a.max(b))
}

impl World {
    pub(super) fn new(plan: Plan, fault: Fault, mut engine: Engine<Event>) -> Self {
        engine.now_us = 1_000_000;
        let count = plan.workers.len();
        let node = |at: usize| Node {
            number: at as u16,
            member: at,
            life: at,
            seats: Vec::new(),
            logs: vec![Vec::new(); plan.workers[at]],
            is_running: false,
            has_exchanged: false,
            heard: 0,
            serves: false,
            has_served: false,
        };
        Self {
            engine,
            fault,
            random: Random::new(plan.seed, "gossip's world"),
            nodes: (0..count).map(node).collect(),
            sessions: BTreeMap::new(),
            view: View {
                epoch: 1,
                nodes: (0..count as u16).collect(),
                next: count as u16,
            },
            deeds: Deeds::new(&plan),
            texts: Texts::new(&plan),
            side: plan.has_side().then(|| Side::new(plan.seed)),
            walkers: plan.walkers().map(|_| walkers::Walker::default()).collect(),
            begun: 0,
            ways: BTreeMap::new(),
            left: 0,
            numbers: 0,
            members: count,
            lives: count,
            past: Figures::default(),
            plan,
        }
    }

    pub(super) fn run(&mut self) -> Result<(), String> {
        for at in 0..self.nodes.len() {
            self.after(1, Event::Start(at));
        }
        for _ in 0..self.plan.rounds {
            self.left = self.plan.operations;
            self.after(self.plan.rest_us(), Event::Client);
            drain(self, MOST_EVENTS, |_| false)?;
            self.settle()?;
        }
        self.start_all_again()
    }

    pub fn operations(&self) -> u64 {
        (self.deeds.len() + self.texts.as_ref().map_or(0, Texts::operations)) as u64
    }

    pub(super) fn reach_mode(&mut self) {
        if self.plan.mode != Mode::Ahead {
            self.engine.reach(self.plan.mode.drawn().name());
        }
        if self.plan.has_deadlines() && self.texts.is_none() {
            self.engine.reach("deadlines set");
        }
    }

    fn after(&mut self, us: u64, event: Event) {
        self.engine.after(us, event);
    }

    pub(super) fn on_event(&mut self, event: Event) {
        match event {
            Event::Poll((at, worker), life) => {
                if self.is_in(at, life)
                    && self.nodes[at].seats[worker].wake_us == Some(self.engine.now_us)
                {
                    self.nodes[at].seats[worker].wake_us = None;
                    self.end_turn(at, worker);
                }
            }
            Event::Sync((at, worker), life) => {
                if self.is_in(at, life) {
                    self.on_sync(at, worker);
                }
            }
            Event::Adopt((at, worker), life, view) => {
                if self.is_in(at, life) {
                    self.on_adopt(at, worker, &view);
                }
            }
            Event::Here((at, worker), life, bytes) => {
                if self.is_in(at, life) {
                    self.nodes[at].seats[worker].receive(self.engine.now_us, bytes);
                    self.end_turn(at, worker);
                }
            }
            Event::Net {
                session,
                from,
                to,
                peer,
            } => self.on_net(session, from, to, peer),
            Event::Client => self.on_client(),
            Event::Break(a, b) => self.disconnect(a, b),
            Event::Connect(a, b) => self.on_connect(a, b),
            Event::Crash(at) => self.on_crash(at),
            Event::Part(at) => self.on_part(at),
            Event::Look(at) => self.on_look(at),
            Event::Excuse(at, life) => self.on_excuse(at, life),
            Event::Save(at, life) => {
                if self.is_in(at, life) {
                    self.on_save(at);
                }
            }
            Event::Start(at) => self.on_start(at),
            Event::Drop(at) => self.on_drop(at),
            Event::Rejoin(at) => self.on_rejoin(at),
        }
    }

    fn is_in(&self, at: usize, life: usize) -> bool {
        self.nodes[at].is_running && self.nodes[at].life == life
    }

    /// Takes a worker's replication further; has it polled when it wants to be,
    /// and its log written.
    fn end_turn(&mut self, at: usize, worker: usize) {
        let (us, life) = (self.engine.now_us, self.nodes[at].life);
        let sync_after = self.random.between(1, self.plan.sync_us);
        let seat = &mut self.nodes[at].seats[worker];
        let held = seat.take_late(us);
        self.take(at, worker, held);
        let seat = &mut self.nodes[at].seats[worker];
        seat.poll(us);
        let led_us = seat.led_us(us);
        let wanted = seat.wants(us);
        let wake = wanted.filter(|&wake| seat.wake_us.is_none_or(|known| known > wake));
        if let Some(wake) = wake {
            seat.wake_us = Some(wake);
        }
        let syncs = seat.has_to_sync() && !seat.sync_is_due;
        seat.sync_is_due |= syncs;
        // Each start continues above what was logged of reports.
        let starts = life as u64 + 1;
        if led_us > MAX_STAMP_LEAD_US + starts * REPORT_RESERVE_US {
            let what = format!("stamps of node {at} lead its wall clock by {led_us} us");
            self.engine.fail(what);
        }
        if let Some(wake) = wake {
            self.after(wake - us, Event::Poll((at, worker), life));
        }
        if syncs {
            self.after(sync_after, Event::Sync((at, worker), life));
        }
        self.end_start(at);
    }

    fn on_sync(&mut self, at: usize, worker: usize) {
        let seat = &mut self.nodes[at].seats[worker];
        seat.sync_is_due = false;
        let mut told = false;
        for said in seat.sync() {
            match said {
                Said::Here(to, bytes) => self.hand_on(at, (worker, to), bytes),
                Said::Told { bytes, is_report } => {
                    told = true;
                    self.nodes[at].seats[worker].gossip.tell(&bytes, is_report);
                }
                Said::Sent(sent) => self.send(at, worker, sent),
                Said::HasHeard => self.nodes[at].heard += 1,
                Said::Token(number, seen) => self.on_token((at, worker), number, seen),
                Said::Reply(event) => match &mut self.texts {
                    Some(texts) => texts.reply(event),
                    None => self.deeds.reply(event),
                },
            }
        }
        if told {
            self.end_turn(at, worker);
        }
        self.end_start(at);
    }

    /// To another worker of the node, in order.
    fn hand_on(&mut self, at: usize, (from, to): (usize, usize), bytes: Arc<[u8]>) {
        let life = self.nodes[at].life;
        let after = self.in_order((at, from, at, to), self.plan.ring_us);
        self.after(after, Event::Here((at, to), life, bytes));
    }

    fn in_order(&mut self, way: (usize, usize, usize, usize), most_us: u64) -> u64 {
        let arrives = self.engine.now_us + self.random.between(1, most_us);
        let last = self.ways.entry(way).or_default();
        *last = arrives.max(*last + 1);
        *last - self.engine.now_us
    }

    /// To another node, in order, if there is a session.
    fn send(&mut self, at: usize, worker: usize, sent: Sent) {
        let Some(to) = self.nodes.iter().position(|node| node.number == sent.node) else {
            return;
        };
        let Some(session) = self.sessions.get(&pair(at, to)) else {
            return;
        };
        let session = session.number;
        if matches!(sent.peer, Peer::Piece { more: true, .. }) {
            self.engine.reach("pieces");
        }
        let after = self.in_order((at, usize::MAX, to, usize::MAX), self.plan.delay_us);
        let event = Event::Net {
            session,
            from: (self.nodes[at].number, worker as u16),
            to: (to, sent.to),
            peer: sent.peer,
        };
        self.after(after, event);
    }

    fn on_client(&mut self) {
        if self.left == 0 {
            return;
        }
        let think = self.random.between(1, self.plan.think_us);
        let serving = self.nodes.iter().enumerate();
        let serving: Vec<usize> = serving
            .filter(|(_, n)| n.serves)
            .map(|(at, _)| at)
            .collect();
        if serving.is_empty() {
            return self.after(1_000, Event::Client);
        }
        self.left -= 1;
        self.after(think, Event::Client);
        self.misfortune();
        self.write_beside(&serving);
        if self.texts.is_some() {
            return self.read_or_write_somewhere();
        }
        let at = *self.random.pick(&serving);
        if !self.nodes[at].serves {
            return;
        }
        let key = self.deeds.key(&mut self.random);
        let home = self.random.index(self.nodes[at].seats.len());
        let owner = self.nodes[at].seats[home].placement.owner(key.as_bytes());
        let worker = owner.index();
        let place = Place {
            member: self.nodes[at].member,
            life: self.nodes[at].life,
            worker,
            us: self.engine.now_us,
        };
        let seat = &mut self.nodes[at].seats[worker];
        let event = self.deeds.act(seat, place, key, &mut self.random);
        let text = self.deeds.tell(event);
        self.say(at, worker, event, &text);
    }

    fn say(&mut self, at: usize, worker: usize, event: usize, text: &str) {
        self.nodes[at].seats[worker].say(Said::Reply(event));
        let who = format!("{}.{worker}", self.nodes[at].number);
        self.engine.note(who, format_args!("{text}"));
        self.end_turn(at, worker);
    }

    /// An operation of a session.
    fn read_or_write_somewhere(&mut self) {
        let number = self.random.index(self.plan.readers.len());
        if !self.walkers.is_empty() {
            return self.walk(number);
        }
        let reader = &self.plan.readers[number];
        // A new one with every start.
        let life = self.nodes[reader.node].life;
        let session = 1 + life * self.plan.readers.len() + number;
        self.read_or_write(number, session, (reader.node, reader.worker));
    }

    /// An operation of a session, if its node serves.
    fn read_or_write(&mut self, number: usize, session: usize, (at, worker): (usize, usize)) {
        let reader = &self.plan.readers[number];
        let node = &mut self.nodes[at];
        let Some(texts) = self.texts.as_mut().filter(|_| node.serves) else {
            return;
        };
        let (seat, us) = (&mut node.seats[worker], self.engine.now_us);
        let event = texts.act(seat, (session, &reader.writes), us, &mut self.random);
        let text = texts.tell(event);
        self.say(at, worker, event, &text);
    }

    fn note(&mut self, at: usize, what: std::fmt::Arguments<'_>) {
        let who = format!("n{}", self.nodes[at].number);
        self.engine.note(who, what);
    }

    fn stop(&mut self, at: usize) {
        for other in (0..self.nodes.len()).filter(|&other| other != at) {
            self.disconnect(at, other);
        }
        let node = &mut self.nodes[at];
        (node.is_running, node.serves, node.has_exchanged) = (false, false, false);
        node.heard = 0;
        for seat in node.seats.drain(..) {
            self.past.add(&Figures {
                kept_bytes: 0,
                behind: 0,
                ..seat.gossip.figures()
            });
            node.logs.push(seat.log);
        }
    }

    fn is_member(&self, node: &Node) -> bool {
        self.view.nodes.contains(&node.number)
    }

    fn on_crash(&mut self, at: usize) {
        if !self.nodes[at].is_running || !self.is_member(&self.nodes[at]) {
            return;
        }
        self.engine.reach("crash");
        self.note(at, format_args!("crash"));
        self.stop(at);
        let after = self.random.between(1, self.plan.away_us) * self.absence();
        self.after(after, Event::Start(at));
    }

    fn on_start(&mut self, at: usize) {
        if self.nodes[at].is_running || !self.is_member(&self.nodes[at]) {
            return;
        }
        self.note(at, format_args!("start"));
        self.lives += 1;
        let (plan, node) = (&self.plan, &mut self.nodes[at]);
        node.life = self.lives;
        let number = node.number;
        if !node.has_served {
            // It has received only a part of the others' state.
            node.logs.iter_mut().for_each(Vec::clear);
        }
        let logs = std::mem::take(&mut node.logs).into_iter().enumerate();
        let seats = logs.map(|(worker, log)| Seat::new(plan, (at, number, worker), log));
        node.seats = seats.collect();
        node.is_running = true;
        self.look_for_absent(at);
        for worker in 0..self.nodes[at].seats.len() {
            let view = self.view.clone();
            self.nodes[at].seats[worker].act_by(&view);
            self.end_turn(at, worker);
        }
    }

    /// When all workers of a node have each other's state, it connects to nodes;
    /// when those have sent it their state, it serves.
    fn end_start(&mut self, at: usize) {
        let (us, node) = (self.engine.now_us, &mut self.nodes[at]);
        if !node.is_running || node.serves {
            return;
        }
        if !node.has_exchanged {
            if !node.seats.iter_mut().all(Seat::has_exchanged) {
                return;
            }
            node.has_exchanged = true;
            let files: Vec<_> = node.seats.iter_mut().filter_map(Seat::take_held).collect();
            for seat in &mut node.seats {
                seat.bring_back(us, &files);
            }
            self.connect_all(at);
        }
        let node = &mut self.nodes[at];
        if self.fault == Fault::ServesAtOnce || node.heard == node.seats.len() {
            (node.serves, node.has_served) = (true, true);
            self.note(at, format_args!("serves"));
        }
    }
}
