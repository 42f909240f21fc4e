//! Clients: those that go wherever the cluster says, one request at a time; and those
//! that know of no cluster, ask one node for everything, and do so several requests
//! at a time.

use super::followed::PAUSE_US;
use super::loose::Sight;
use super::node::Power;
use super::spread;
use super::units::Further;
use super::wires::{Who, info};
use super::wishes::{Aim, At, Wish, shown};
use super::world::{What, World};
use crate::engine::random::Random;
use crate::history::{Outcome, Record};
use crate::model::{Op, Step};
use crate::node::seat::Arrival;
use rufous_base::{Close, Origin};
use rufous_resp::{Reply, ReplyParser, encode};
use std::collections::{BTreeMap, VecDeque};

/// A client without a reply for so long gives its connection up.
pub(super) const PATIENCE_US: u64 = 12_000_000;

/// How a node is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    /// It redirects the client to the node that has the key.
    Redirecting,
    /// It asks that one itself.
    Plain,
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) wire: usize,
    pub(super) at: At,
    pub(super) life: u32,
    parser: ReplyParser,
    received: Vec<u8>,
    /// Requests that were answered on it.
    answered: u64,
    /// What it has been shown of the lattice keyspace.
    pub(super) sight: Sight,
}

pub(super) struct Client {
    pub(super) door: Door,
    pub(super) connection: Option<Connection>,
    /// The first of them have been sent.
    pub(super) wishes: VecDeque<Wish>,
    sent: usize,
    /// Those that were refused, and are to be asked for again.
    pub(super) again: VecDeque<Wish>,
    /// How long to wait before that.
    pub(super) pause_us: u64,
    /// When its requests went out, if it waits for replies.
    pub(super) asked_us: Option<u64>,
    /// Replies to come before those that count.
    before: usize,
    /// Where slots are, as far as it knows.
    pub(super) known: BTreeMap<u16, usize>,
    /// What the one that reads everything has still to read.
    to_read: VecDeque<Wish>,
    /// Since when it wants what it asks for now.
    pub(super) since_us: Option<u64>,
    /// It was woken for this time; other wake-ups are stale.
    act_at_us: u64,
    pub(super) random: Random,
    /// Whether it next uses the pair, and how.
    pub(super) pairs: Random,
    /// The same of the key with deadlines.
    pub(super) deadlines: Random,
    pub(super) further: Further,
    /// Whether it next uses keys of several slots, and how.
    pub(super) spread: Random,
    /// Whether it begins a transaction on them, and commits it.
    pub(super) begun: Random,
    /// The key of several slots that it has used alone just now, to go on with another of them.
    pub(super) single: Option<usize>,
    /// How many requests it has sent at once.
    at_once: usize,
}

impl Client {
    pub(super) fn new(seed: u64, number: usize, door: Door) -> Self {
        Self {
            door,
            connection: None,
            wishes: VecDeque::new(),
            sent: 0,
            again: VecDeque::new(),
            pause_us: 0,
            asked_us: None,
            before: 0,
            known: BTreeMap::new(),
            to_read: VecDeque::new(),
            since_us: None,
            act_at_us: 0,
            random: Random::new(seed, &format!("client {number}")),
            pairs: Random::new(seed, &format!("pairs of client {number}")),
            deadlines: Random::new(seed, &format!("deadlines of client {number}")),
            further: Further::new(seed, number),
            spread: Random::new(seed, &format!("transactions of client {number}")),
            begun: Random::new(seed, &format!("begun by client {number}")),
            single: None,
            at_once: 0,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.wishes.is_empty() && self.again.is_empty() && self.to_read.is_empty()
    }

    /// Whether it has sent one request, and not several at once.
    pub(super) fn asks_one(&self) -> bool {
        self.at_once == 1
    }

    pub(super) fn describe(&self) -> String {
        let at = self.connection.as_ref().map(|connection| connection.at);
        let (wishes, asked) = (&self.wishes, self.asked_us);
        format!("wants {wishes:?}, asked {asked:?}, is at {at:?}")
    }

    /// All that was sent is over; what was refused is the next to be asked for.
    fn begin_again(&mut self) {
        (self.asked_us, self.sent) = (None, 0);
        self.again.append(&mut self.wishes);
        std::mem::swap(&mut self.again, &mut self.wishes);
    }
}

impl World {
    /// The last client reads everything at the end.
    pub(super) fn auditor(&self) -> &Client {
        &self.clients[self.plan.clients]
    }

    pub(super) fn audit(&mut self, wishes: VecDeque<Wish>) {
        let auditor = self.plan.clients;
        self.clients[auditor].to_read = wishes;
        self.act_in(auditor, 1);
    }

    pub(super) fn act_in(&mut self, client: usize, us: u64) {
        let at = self.engine.now_us + us;
        self.clients[client].act_at_us = at;
        self.push(at, None, What::Act(client));
    }

    pub(super) fn on_act(&mut self, client: usize) {
        let now = self.engine.now_us;
        let found = &mut self.clients[client];
        if found.act_at_us > now {
            return;
        }
        if let (Some(asked), Some(connection)) = (found.asked_us, &found.connection) {
            if now >= asked + self.plan.patience_us() {
                let wire = connection.wire;
                self.look_at_patience(client);
                self.close(wire, 0, Close::Now);
                self.on_lost(client, wire);
            }
            return;
        }
        if found.wishes.is_empty() {
            let next = match client == self.plan.clients {
                true => found.to_read.pop_front().into_iter().collect(),
                false if self.calm => VecDeque::new(),
                false => self.next_wishes(client),
            };
            if next.is_empty() {
                return;
            }
            self.clients[client].wishes = next;
            self.clients[client].since_us = Some(now);
        }
        self.ask(client);
    }

    /// Where a client asks for something.
    fn place_for(&mut self, client: usize, wish: &Wish) -> At {
        if let Some(at) = wish.at {
            return at;
        }
        let found = &mut self.clients[client];
        if let (true, Some(connection)) = (wish.aim.is_guarded(), &found.connection) {
            return connection.at;
        }
        // Any node with a copy answers reads, too.
        let is_anywhere = !wish.writes() && found.random.chance(0.2);
        let slot = wish.slot().filter(|_| !is_anywhere);
        let known = slot.and_then(|slot| found.known.get(&slot).copied());
        let stays = match (found.door, wish.slot()) {
            (Door::Redirecting, Some(_)) => false,
            _ => found.random.chance(0.9),
        };
        let here = found.connection.as_ref().filter(|_| stays);
        let here = here.map(|connection| connection.at.node);
        let node = match here.or(known) {
            Some(node) => node,
            None => found.random.index(self.nodes.len()),
        };
        At {
            node,
            worker: None,
            door: found.door,
        }
    }

    /// Sends the client's requests to the node that it expects to have the keys.
    fn ask(&mut self, client: usize) {
        let Some(wish) = self.clients[client].wishes.front().cloned() else {
            return;
        };
        if self.clients[client].has_lost_its_watch(&wish.aim) {
            self.clients[client].wishes.pop_front();
            return self.think(client);
        }
        let at = self.place_for(client, &wish);
        let there = self.clients[client].connection.as_ref();
        let is_there = |connection: &Connection| {
            let is = connection.at;
            let worker = at.worker.is_none() || at.worker == is.worker;
            is.node == at.node && is.door == at.door && worker
        };
        if !there.is_some_and(is_there) && !self.connect(client, at) {
            let found = &mut self.clients[client];
            if let Some(slot) = wish.slot() {
                found.known.remove(&slot);
            }
            let wait = found.random.skewed(1_000, 300_000);
            return self.act_in(client, wait);
        }
        let mut bytes = Vec::new();
        let found = &mut self.clients[client];
        found.before = 0;
        if wish.at.is_some() && at.door == Door::Redirecting {
            encode::request(&mut bytes, &["READONLY"]);
            found.before = 1;
        }
        found.sent = match at.door {
            Door::Plain => found.wishes.len(),
            Door::Redirecting => 1,
        };
        found.at_once = found.sent;
        for wish in found.wishes.iter().take(found.sent) {
            for request in wish.requests() {
                encode::request(&mut bytes, &request);
            }
        }
        (found.asked_us, found.pause_us) = (Some(self.engine.now_us), 0);
        if let Some(connection) = &found.connection {
            let wire = connection.wire;
            self.send_bytes(wire, 0, bytes);
        }
        self.act_in(client, self.plan.patience_us());
    }

    fn connect(&mut self, client: usize, at: At) -> bool {
        if let Some(before) = self.clients[client].connection.take() {
            if self.is_sick(before.at.node) {
                self.clients[client].since_us = Some(self.engine.now_us);
            }
            self.close(before.wire, 0, Close::AfterReplies);
        }
        let node = at.node;
        if self.nodes[node].power != Power::Up {
            return false;
        }
        let worker = match at.worker {
            Some(worker) => worker,
            None => self.network.index(self.nodes[node].workers),
        };
        let (life, conn) = (
            self.nodes[node].life,
            self.nodes[node].seats[worker].new_connection(),
        );
        let there = Who::Worker {
            node,
            worker,
            life,
            conn: Some(conn),
        };
        let wire = self.new_wire([Who::Client(client), there]);
        self.clients[client].connection = Some(Connection {
            wire,
            at: At {
                worker: Some(worker),
                ..at
            },
            life,
            parser: ReplyParser::default(),
            received: Vec::new(),
            answered: 0,
            sight: Sight::default(),
        });
        let origin = match at.door {
            Door::Plain => Origin::Client,
            Door::Redirecting => Origin::Redirected,
        };
        let info = info(format!("client-{client}:{wire}"), origin);
        self.arrive(node, worker, Arrival::Opened(conn, info));
        true
    }

    pub(super) fn on_reply(&mut self, client: usize, wire: usize, bytes: &[u8]) {
        let found = &mut self.clients[client];
        let Some(connection) = found.connection.as_mut().filter(|c| c.wire == wire) else {
            return;
        };
        connection.received.extend_from_slice(bytes);
        while let Some(connection) = &mut self.clients[client].connection {
            let parsed = connection.parser.parse(&connection.received);
            let Ok((used, reply)) = parsed else {
                return self.fail(format!("client {client} was sent no protocol"));
            };
            connection.received.drain(..used);
            let Some(reply) = reply else {
                return;
            };
            let found = &mut self.clients[client];
            if found.before > 0 {
                found.before -= 1;
                continue;
            }
            let aim = found.wishes.front().map(|wish| &wish.aim);
            let replies = aim.map_or((1, false), |aim| (aim.replies(), aim.has_many()));
            let Some(reply) = found.further.hear(replies, reply) else {
                continue;
            };
            let wish = match found.sent {
                0 => None,
                _ => found.wishes.pop_front(),
            };
            let Some(wish) = wish else {
                return self.fail(format!(
                    "client {client} is told what it did not ask: {reply:?}"
                ));
            };
            found.sent -= 1;
            self.on_answered(client, wish, reply);
        }
    }

    fn on_answered(&mut self, client: usize, wish: Wish, reply: Reply) {
        let who = format!("c{client}");
        match &wish.aim {
            Aim::Pair(_) => self.note(&who, format_args!("{}", shown(&reply))),
            _ => self.note(&who, format_args!("{wish:?} -> {reply:?}")),
        }
        match (reply, wish.aim) {
            (Reply::Error(text), aim) if !aim.comes_to(&text) => {
                let text = String::from_utf8_lossy(&text).into_owned();
                let wish = Wish { aim, ..wish };
                self.on_refused(client, wish, &text);
            }
            (Reply::Array(replies), Aim::Begin(unit, op)) => {
                self.on_begun(client, (unit, op), replies);
            }
            (Reply::Array(replies), Aim::Undone(_, op)) => self.on_undone(client, &op, replies),
            (reply, Aim::Commit(begun)) => {
                let unit = begun.unit;
                if let Some((op, reply)) = self.on_committed(begun, reply) {
                    let aim = Aim::Spread(unit, op);
                    self.record(client, Wish { aim, ..wish }, Outcome::Seen(reply));
                }
            }
            (reply, aim) => self.record(client, Wish { aim, ..wish }, Outcome::Seen(reply)),
        }
        let found = &mut self.clients[client];
        if found.sent > 0 {
            return;
        }
        found.begin_again();
        match (found.wishes.is_empty(), found.pause_us) {
            (false, pause) if pause > 0 => self.act_in(client, pause),
            _ => self.think(client),
        }
    }

    /// Its connection is gone.
    pub(super) fn on_lost(&mut self, client: usize, wire: usize) {
        let found = &mut self.clients[client];
        if found.connection.as_ref().is_none_or(|c| c.wire != wire) {
            return;
        }
        let sent: Vec<Wish> = found.wishes.drain(..found.sent).collect();
        found.sent = 0;
        found.further.lost();
        if !sent.is_empty() {
            let who = format!("c{client}");
            self.note(&who, format_args!("lost its connection"));
        }
        let was_asked = !sent.is_empty();
        for wish in sent {
            if wish.writes() {
                self.reach("an outcome is unknown");
                self.record(client, wish, Outcome::Open);
            } else {
                self.clients[client].again.push_back(wish);
            }
        }
        let found = &mut self.clients[client];
        if let Some(connection) = found.connection.take() {
            let node = connection.at.node;
            found.known.retain(|_, known| *known != node);
            if self.is_sick(node) {
                self.clients[client].since_us = Some(self.engine.now_us);
            }
        }
        let found = &mut self.clients[client];
        if was_asked {
            found.begin_again();
            let wait = found.random.skewed(1_000, 100_000);
            self.act_in(client, wait);
        }
    }

    fn think(&mut self, client: usize) {
        self.clients[client].since_us = None;
        let most = match client == self.plan.clients {
            true => 1_000,
            false if self.clients[client].single.is_some() => PAUSE_US,
            false => self.plan.think_us,
        };
        let found = &mut self.clients[client];
        let wait = match found.further.hesitates() {
            Some(long_us) => long_us,
            None => found.random.skewed(100, most),
        };
        self.act_in(client, wait);
    }

    pub(super) fn record(&mut self, client: usize, wish: Wish, outcome: Outcome) {
        self.operations += 1;
        let found = &mut self.clients[client];
        let (Some(asked_us), Some(connection)) = (found.asked_us, &mut found.connection) else {
            return;
        };
        connection.answered += 1;
        let (wire, order) = (connection.wire as u64, connection.answered);
        let (key, op) = match wish.aim {
            Aim::Commit(begun) if begun.token.is_some() && outcome == Outcome::Open => {
                return self.ask_outcome(client, begun, asked_us);
            }
            Aim::Outcome(begun, from_us) => {
                return self.note_outcome(client, begun, (from_us, outcome));
            }
            Aim::Loose(key, deed) => return self.note_deed(client, (key, deed), &outcome),
            Aim::Pair(value) => return self.look_at_pair(value, &outcome, asked_us),
            Aim::Fleeting(set) => {
                let value = set.as_ref().map(|(value, _)| &value[..]);
                return self.look_at_fleeting(value, &outcome, asked_us);
            }
            Aim::Strict(key, op) => (key, op),
            Aim::Unit(_, op) if self.was_touched(&op, &outcome) => return,
            Aim::Unit(unit, op) => (unit, op),
            Aim::Begin(..) | Aim::Undone(..) => return,
            Aim::Commit(begun) => (spread::place_of(begun.unit), begun.op),
            Aim::Spread(unit, op) => {
                self.note_spread(unit, &op, &outcome);
                (spread::place_of(unit), op)
            }
            Aim::Watch(unit) => {
                self.note_watched(client, unit, &outcome);
                (unit, Op::One(Step::Get(0)))
            }
        };
        let is_seen = matches!(outcome, Outcome::Seen(_));
        let record = Record {
            op,
            outcome,
            // What is in doubt may be done at any time, also after what was asked later.
            connection: if is_seen {
                wire
            } else {
                u64::MAX - self.operations
            },
            order,
            asked_us,
            answered_us: if is_seen {
                self.engine.now_us
            } else {
                u64::MAX
            },
        };
        self.history.add(key, 0, record);
    }
}
