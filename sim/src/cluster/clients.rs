//! Clients: one request at a time, wherever the cluster says that it is to be done.

use super::node::Power;
use super::plan::KEYS;
use super::wires::{Who, info, node_of};
use super::world::{What, World};
use crate::history::{Outcome, Record};
use crate::model::{Op, Step};
use crate::random::Random;
use crate::seat::Arrival;
use rufous_base::slot::slot_of;
use rufous_base::{Close, Origin};
use rufous_resp::{Reply, ReplyParser, encode};
use std::collections::{BTreeMap, VecDeque};

/// A client without a reply for so long gives its connection up.
const PATIENCE_US: u64 = 8_000_000;

/// What is to be done.
#[derive(Clone, Debug)]
struct Wish {
    key: usize,
    op: Op,
    /// Read at this node, whoever is the head.
    at: Option<usize>,
}

#[derive(Debug)]
struct Connection {
    wire: usize,
    node: usize,
    parser: ReplyParser,
    received: Vec<u8>,
}

pub(super) struct Client {
    number: usize,
    connection: Option<Connection>,
    wish: Option<Wish>,
    /// When its request went out, if it waits for a reply.
    asked_us: Option<u64>,
    /// Replies to come before the one that counts.
    before: usize,
    /// Where slots are, as far as it knows.
    known: BTreeMap<u16, usize>,
    /// What the one that reads everything has still to read.
    to_read: VecDeque<Wish>,
    /// It was woken for this time; other wake-ups are stale.
    act_at_us: u64,
    random: Random,
}

impl Client {
    pub(super) fn new(seed: u64, number: usize) -> Self {
        Self {
            number,
            connection: None,
            wish: None,
            asked_us: None,
            before: 0,
            known: BTreeMap::new(),
            to_read: VecDeque::new(),
            act_at_us: 0,
            random: Random::new(seed, &format!("client {number}")),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.wish.is_none() && self.to_read.is_empty()
    }

    pub(super) fn describe(&self) -> String {
        let at = self.connection.as_ref().map(|connection| connection.node);
        let wish = &self.wish;
        format!("wants {wish:?}, asked {:?}, is at {at:?}", self.asked_us)
    }
}

impl World {
    pub(super) fn auditor(&self) -> &Client {
        &self.clients[self.plan.clients]
    }

    /// Everything is read at its head and at all other members of its chain.
    pub(super) fn read_everything(&mut self) {
        let mapping = &self.coordinator.mapping;
        let mut wishes = VecDeque::new();
        for (key, name) in KEYS.iter().enumerate() {
            let op = Op::One(Step::Get(0));
            let chain = mapping.chains.of(slot_of(name.as_bytes()));
            let ids = chain.members.iter().map(|no| mapping.members[no].id);
            let nodes = ids.filter_map(|id| self.nodes.iter().position(|node| node.id == id));
            for at in std::iter::once(None).chain(nodes.map(Some)) {
                let op = op.clone();
                wishes.push_back(Wish { key, op, at });
            }
        }
        let auditor = self.plan.clients;
        self.clients[auditor].to_read = wishes;
        self.act_in(auditor, 1);
    }

    pub(super) fn act_in(&mut self, client: usize, us: u64) {
        let at = self.now_us + us;
        self.clients[client].act_at_us = at;
        self.push(at, None, What::Act(client));
    }

    pub(super) fn on_act(&mut self, client: usize) {
        let now = self.now_us;
        let found = &mut self.clients[client];
        if found.act_at_us > now {
            return;
        }
        if let (Some(asked), Some(connection)) = (found.asked_us, &found.connection) {
            if now >= asked + PATIENCE_US {
                let wire = connection.wire;
                self.close(wire, 0, Close::Now);
                self.on_lost(client, wire);
            }
            return;
        }
        if found.wish.is_none() {
            let next = match client == self.plan.clients {
                true => found.to_read.pop_front(),
                false if self.calm => None,
                false => Some(self.next_wish(client)),
            };
            let Some(wish) = next else {
                return;
            };
            self.clients[client].wish = Some(wish);
        }
        self.ask(client);
    }

    fn next_wish(&mut self, client: usize) -> Wish {
        let random = &mut self.clients[client].random;
        let key = random.index(KEYS.len());
        self.values += 1;
        let text = format!("{}.{}", client, self.values).into_bytes();
        let is_counter = key % 3 == 2;
        let step = match (random.below(10), is_counter) {
            (0..=3, _) => Step::Get(0),
            (4, _) => Step::Del(vec![0]),
            (_, true) => Step::IncrBy(0, 1 + random.below(100) as i64),
            (5..=6, false) => Step::Set {
                key: 0,
                value: text,
                px: None,
            },
            (_, false) => Step::Append(0, [&text[..], b","].concat()),
        };
        let op = Op::One(step);
        Wish { key, op, at: None }
    }

    /// Sends its request to whom it takes for the head.
    fn ask(&mut self, client: usize) {
        let Some(wish) = self.clients[client].wish.clone() else {
            return;
        };
        let slot = slot_of(KEYS[wish.key].as_bytes());
        let known = self.clients[client].known.get(&slot).copied();
        let node = match wish.at.or(known) {
            Some(node) => node,
            None => self.clients[client].random.index(self.nodes.len()),
        };
        let there = self.clients[client].connection.as_ref();
        if there.is_none_or(|connection| connection.node != node) && !self.connect(client, node) {
            self.clients[client].known.remove(&slot);
            let wait = self.clients[client].random.skewed(1_000, 300_000);
            return self.act_in(client, wait);
        }
        let mut bytes = Vec::new();
        let found = &mut self.clients[client];
        found.before = 0;
        if wish.at.is_some() {
            encode::request(&mut bytes, &["READONLY"]);
            found.before = 1;
        }
        let keys = [KEYS[wish.key].as_bytes().to_vec()];
        for request in wish.op.requests(&keys) {
            encode::request(&mut bytes, &request);
        }
        found.asked_us = Some(self.now_us);
        if let Some(connection) = &found.connection {
            let wire = connection.wire;
            self.send_bytes(wire, 0, bytes);
        }
        self.act_in(client, PATIENCE_US);
    }

    fn connect(&mut self, client: usize, node: usize) -> bool {
        if let Some(before) = self.clients[client].connection.take() {
            self.close(before.wire, 0, Close::AfterReplies);
        }
        if self.nodes[node].power != Power::Up {
            return false;
        }
        let worker = self.network.index(self.nodes[node].workers);
        let conn = self.nodes[node].seats[worker].new_connection();
        let there = Who::Worker {
            node,
            worker,
            life: self.nodes[node].life,
            conn: Some(conn),
        };
        let wire = self.new_wire([Who::Client(client), there]);
        self.clients[client].connection = Some(Connection {
            wire,
            node,
            parser: ReplyParser::default(),
            received: Vec::new(),
        });
        let info = info(format!("client-{client}:{wire}"), Origin::Redirected);
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
            if found.asked_us.is_none() {
                return self.fail(format!(
                    "client {client} is told what it did not ask: {reply:?}"
                ));
            }
            self.on_answered(client, reply);
        }
    }

    fn on_answered(&mut self, client: usize, reply: Reply) {
        let shown = format!("{reply:?}");
        let wish = self.clients[client].wish.clone();
        let who = format!("c{client}");
        self.note(&who, format_args!("{wish:?} -> {shown}"));
        let Some(wish) = wish else {
            return;
        };
        if let Reply::Error(text) = &reply {
            let text = String::from_utf8_lossy(text).into_owned();
            return self.on_refused(client, &wish, &text);
        }
        self.record(client, Outcome::Seen(reply));
        self.think(client);
    }

    fn on_refused(&mut self, client: usize, wish: &Wish, text: &str) {
        let slot = slot_of(KEYS[wish.key].as_bytes());
        let found = &mut self.clients[client];
        found.asked_us = None;
        found.known.remove(&slot);
        let wait = match text.split(' ').collect::<Vec<_>>()[..] {
            ["MOVED", told, to] => {
                let node = node_of(to).filter(|_| told == slot.to_string());
                let Some(node) = node else {
                    return self.fail(format!("client {client} is sent nowhere: {text}"));
                };
                found.known.insert(slot, node);
                self.reach("a client was sent elsewhere");
                // Two nodes may send it to and fro while they know different epochs.
                self.clients[client].random.skewed(10, 20_000)
            }
            ["TRYAGAIN" | "CLUSTERDOWN" | "LOADING" | "MISCONF", ..] => {
                self.reach("a client was told to try again");
                self.clients[client].random.skewed(5_000, 200_000)
            }
            _ => return self.fail(format!("client {client} is refused {wish:?}: {text}")),
        };
        self.act_in(client, wait);
    }

    /// Its connection is gone.
    pub(super) fn on_lost(&mut self, client: usize, wire: usize) {
        let found = &mut self.clients[client];
        let Some(connection) = found.connection.take_if(|c| c.wire == wire) else {
            return;
        };
        found.known.retain(|_, node| *node != connection.node);
        if found.asked_us.is_none() {
            return;
        }
        let is_audit = client == self.plan.clients;
        let reads = found.wish.as_ref().is_some_and(|wish| !wish.op.writes());
        if is_audit || reads {
            found.asked_us = None;
            let wait = found.random.skewed(1_000, 100_000);
            return self.act_in(client, wait);
        }
        self.reach("an outcome is unknown");
        let who = format!("c{client}");
        self.note(&who, format_args!("lost its connection"));
        self.record(client, Outcome::Open);
        self.think(client);
    }

    fn think(&mut self, client: usize) {
        let most = match client == self.plan.clients {
            true => 1_000,
            false => self.plan.think_us,
        };
        let wait = self.clients[client].random.skewed(100, most);
        self.act_in(client, wait);
    }

    fn record(&mut self, client: usize, outcome: Outcome) {
        let found = &mut self.clients[client];
        let (Some(wish), Some(asked_us)) = (found.wish.take(), found.asked_us.take()) else {
            return;
        };
        self.operations += 1;
        let answered_us = match outcome {
            Outcome::Seen(_) => self.now_us,
            _ => u64::MAX,
        };
        let record = Record {
            op: wish.op,
            outcome,
            // Each asks for one thing at a time: time alone says what was before what.
            connection: self.operations,
            order: 0,
            asked_us,
            answered_us,
        };
        debug_assert_eq!(self.clients[client].number, client);
        self.history.add(wish.key, 0, record);
    }
}
