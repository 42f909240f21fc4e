//! What clients do, and what they see.

use super::{Power, What, World};
use crate::engine::trace::show;
use crate::history::{Kind, Outcome, Record};
use crate::model::{Op, Step};
use crate::node::client::{Asked, Awaited, State, refusal};
use crate::node::plan::Mode;
use crate::node::seat::Arrival;
use crate::node::world::network::Link;
use crate::node::{settings, workload};
use rufous_base::{ConnInfo, Origin};
use rufous_resp::{Reply, encode};

impl World {
    pub(super) fn operator(&self) -> usize {
        self.clients.len() - 1
    }

    pub(super) fn act_in(&mut self, client: usize, us: u64) {
        self.push(self.engine.now_us + us, None, What::Act(client));
    }

    pub(super) fn on_act(&mut self, client: usize) {
        if let Some(number) = self.lattice_client(client) {
            return self.on_lattice_act(number);
        }
        if let Some(number) = self.queue_client(client) {
            return self.on_queue_act(number);
        }
        let operator = client == self.operator();
        match self.clients[client].state {
            State::Away if self.power == Power::Up => self.connect(client),
            State::Away => {
                let wait = self.network.skewed(500, 50_000);
                return self.act_in(client, wait);
            }
            State::Connected(_) if !self.clients[client].awaited.is_empty() => return,
            State::Connected(_) => {}
        }
        let State::Connected(link) = self.clients[client].state else {
            return;
        };
        if !self.links[link].open || self.links[link].ended {
            // It will learn that soon, or waits for it.
            return;
        }
        if operator {
            return self.operate(link);
        }
        if self.clients[client].left == 0 {
            return;
        }
        if !self.calm && self.clients[client].random.chance(self.plan.disconnect) {
            return self.leave(client, link);
        }
        let mut bytes = Vec::new();
        self.compose(client, &mut bytes);
        self.send_to_node(link, bytes);
        if !self.calm && self.clients[client].random.chance(self.plan.disconnect) {
            self.leave(client, link);
        }
    }

    fn connect(&mut self, client: usize) {
        let worker = self.network.index(self.seats.len());
        let link = self.open_link(client, worker);
        self.clients[client].connected(link);
    }

    /// A connection of a client, by its number among all, to a worker.
    pub(super) fn open_link(&mut self, client: usize, worker: usize) -> usize {
        let conn = self.seats[worker].new_connection();
        let link = self.links.len();
        self.links.push(Link::new(client, worker, conn, self.life));
        self.places
            .insert((worker, conn.slot, conn.generation), link);
        let info = ConnInfo {
            peer: format!("127.0.0.1:{}", 10_000 + link),
            local: "127.0.0.1:6379".into(),
            is_local: true,
            origin: Origin::Client,
            certificate: None,
        };
        self.arrive(worker, Arrival::Opened(conn, info));
        link
    }

    /// The client sends no more, or goes at once.
    fn leave(&mut self, client: usize, link: usize) {
        let gone = self.network.chance(0.6);
        let at = self.arrival_at_node(link);
        self.push(at, Some(self.life), What::LeftNode { link, gone });
        if !self.clients[client].awaited.is_empty() {
            self.engine.reach("connection lost with requests");
        }
        if gone {
            let at = self.engine.now_us;
            self.push(at, None, What::ClientLost { link });
        }
        // Else it reads on until the node closes.
        self.links[link].ended = true;
    }

    /// What a client asks for next.
    fn compose(&mut self, client: usize, bytes: &mut Vec<u8>) {
        if !self.clients[client].ready {
            let db = self.clients[client].random.index(2);
            return self.select(client, db, bytes);
        }
        let most = self.plan.pipeline.min(self.clients[client].left);
        let count = self.clients[client].random.between(1, most);
        for _ in 0..count {
            self.clients[client].left -= 1;
            self.one_more(client, bytes);
            let last = self.clients[client].awaited.back();
            if last.is_some_and(|a| matches!(a.what, Asked::Watched(..))) {
                // Another EXEC would let go of the watch.
                break;
            }
        }
    }

    fn select(&mut self, client: usize, db: usize, bytes: &mut Vec<u8>) {
        encode::request(bytes, &["SELECT", &db.to_string()]);
        // Selecting may be allowed while the node loads; reading is not.
        encode::request(bytes, &["EXISTS", "anything"]);
        self.ask(client, Asked::Select(db), Op::One(Step::GetAll), 2);
    }

    fn ask(&mut self, client: usize, what: Asked, op: Op, replies: usize) {
        let now = self.engine.now_us;
        self.clients[client].ask(what, op, replies, now);
    }

    fn one_more(&mut self, client: usize, bytes: &mut Vec<u8>) {
        let db = self.clients[client].db;
        if let Some((unit, key, seen)) = self.clients[client].watched.take() {
            let random = &mut self.clients[client].random;
            let op = workload::guarded(random, (key, seen), key, &mut self.unique);
            return self.ask_unit(client, unit, op, bytes);
        }
        if self.clients[client].random.chance(0.004) {
            encode::request(bytes, &["FLUSHDB"]);
            return self.ask(client, Asked::Flush(db), Op::One(Step::Flush), 1);
        }
        let units: Vec<_> = (0..self.history.units.len())
            .filter(|u| self.history.units[*u].db == db)
            .collect();
        let Some(&unit) = units.get(self.clients[client].random.index(units.len())) else {
            encode::request(bytes, &["PING"]);
            return self.ask(client, Asked::Other("ping"), Op::One(Step::GetAll), 1);
        };
        let what = &self.history.units[unit];
        let watches = what.kind == Kind::Text && settings::knows("watch");
        let random = &mut self.clients[client].random;
        if watches && random.chance(0.15) {
            return self.watch(client, unit, bytes);
        }
        let mut op = workload::choose(random, what, &mut self.unique);
        while matches!(op, Op::Transaction { .. }) && !settings::knows("multi") {
            op = workload::choose(random, what, &mut self.unique);
        }
        self.ask_unit(client, unit, op, bytes);
    }

    fn watch(&mut self, client: usize, unit: usize, bytes: &mut Vec<u8>) {
        let key = self.history.units[unit].keys[0].clone();
        encode::request(bytes, &[&b"WATCH"[..], &key]);
        encode::request(bytes, &[&b"GET"[..], &key]);
        self.ask(client, Asked::Watched(unit, 0), Op::One(Step::Get(0)), 2);
    }

    fn ask_unit(&mut self, client: usize, unit: usize, op: Op, bytes: &mut Vec<u8>) {
        let requests = op.requests(&self.history.units[unit].keys);
        for request in &requests {
            encode::request(bytes, request);
        }
        self.ask(client, Asked::Unit(unit), op, requests.len());
    }

    fn look_at(&self, unit: usize) -> Op {
        match &self.history.units[unit] {
            unit if unit.kind.is_of_collections() => workload::look(unit),
            _ => Op::One(Step::GetAll),
        }
    }

    /// The operator takes snapshots, changes settings, and at the end reads
    /// everything.
    fn operate(&mut self, link: usize) {
        let operator = self.operator();
        let mut bytes = Vec::new();
        if let Some(&unit) = self.audit.last() {
            let db = self.history.units[unit].db;
            if !self.clients[operator].ready || self.clients[operator].db != db {
                self.select(operator, db, &mut bytes);
            } else {
                let look = self.look_at(unit);
                self.ask_unit(operator, unit, look, &mut bytes);
            }
            return self.send_to_node(link, bytes);
        }
        if self.calm {
            return self.act_in(operator, 1_000);
        }
        if self.ballast_of != self.life && self.plan.ballast > 0 {
            return self.load_ballast(link);
        }
        let random = &mut self.clients[operator].random;
        if self.plan.switches_log() && random.chance(0.5) {
            encode::request(&mut bytes, &["CONFIG", "SET", "appendonly", "yes"]);
            self.ask(operator, Asked::Other("switch"), Op::One(Step::GetAll), 1);
            self.end_while_it_switches();
            self.send_to_node(link, bytes);
            // The node need not wait for the reply.
            if self.chance.chance(0.5) {
                self.leave(operator, link);
            }
            return;
        }
        let choices: &[(u32, &str)] = &[(3, "BGSAVE"), (2, "BGREWRITEAOF"), (2, "fsync")];
        let what = random.weighted(choices);
        if what == "fsync" && self.plan.mode != Mode::Off {
            let mode = match self.plan.mode_changes {
                true => *random.pick(&[Mode::Always, Mode::Everysec, Mode::No]),
                false => self.plan.mode,
            };
            encode::request(&mut bytes, &["CONFIG", "SET", "appendfsync", mode.name()]);
            self.modes.asked(mode, self.engine.now_us);
            self.ask(operator, Asked::Fsync(mode), Op::One(Step::GetAll), 1);
        } else if what != "fsync" && settings::knows(&what.to_lowercase()) {
            encode::request(&mut bytes, &[what]);
            self.ask(operator, Asked::Other(what), Op::One(Step::GetAll), 1);
        } else {
            return self.act_in(operator, self.plan.operator_us);
        }
        self.send_to_node(link, bytes);
    }

    /// Writes large keys, once in each life of the node.
    fn load_ballast(&mut self, link: usize) {
        let operator = self.operator();
        let mut bytes = Vec::new();
        if !self.clients[operator].ready {
            self.select(operator, 2, &mut bytes);
        } else {
            self.ballast_of = self.life;
            for key in 0..self.plan.ballast {
                let key = format!("ballast:{key}");
                encode::request(&mut bytes, &[&b"SET"[..], key.as_bytes(), &[b'b'; 10_000]]);
                self.ask(operator, Asked::Other("ballast"), Op::One(Step::GetAll), 1);
            }
        }
        self.send_to_node(link, bytes);
    }

    pub(super) fn on_bytes_to_client(&mut self, link: usize, bytes: &[u8]) {
        let client = self.links[link].client;
        if let Some(number) = self.lattice_client(client) {
            return self.on_bytes_to_lattice_client(number, link, bytes);
        }
        if let Some(number) = self.queue_client(client) {
            return self.on_bytes_to_queue_client(number, link, bytes);
        }
        if self.clients[client].state != State::Connected(link) {
            return;
        }
        self.engine.note(
            format_args!("c{client}"),
            format_args!("receives {}", show(bytes)),
        );
        match self.clients[client].receive(bytes, self.engine.now_us) {
            Ok(answered) => {
                let any = !answered.is_empty();
                for awaited in answered {
                    self.on_answered(client, awaited);
                }
                if any && self.clients[client].awaited.is_empty() {
                    self.think(client);
                }
            }
            Err(problem) => self.fail(format!("client {client}: {problem}")),
        }
    }

    fn think(&mut self, client: usize) {
        let us = match client == self.operator() {
            true if self.calm => 1_000,
            true => self.plan.operator_us,
            // The node loads.
            false if !self.clients[client].ready => self.network.skewed(500, 20_000),
            false => self.clients[client]
                .random
                .skewed(1, 2 * self.plan.think_us),
        };
        self.act_in(client, us.max(1));
    }

    fn on_answered(&mut self, client: usize, mut awaited: Awaited) {
        let Outcome::Seen(reply) = awaited.record.outcome.clone() else {
            return;
        };
        let refused = refusal(&reply);
        if refused == Some("LOADING") {
            self.engine.reach("loading");
            self.clients[client].ready = false;
            if matches!(
                awaited.what,
                Asked::Unit(_) | Asked::Watched(..) | Asked::Flush(_)
            ) && client != self.operator()
            {
                self.clients[client].left += 1;
            }
            return;
        }
        match refused {
            Some("MISCONF") => self.engine.reach("misconf"),
            Some("OOM") => self.engine.reach("out of memory"),
            Some("EXECABORT") => self.engine.reach("exec aborted"),
            _ => {}
        }
        if matches!(&reply, Reply::Error(text) if text.starts_with(b"WRONGTYPE")) {
            self.engine.reach("wrong type");
        } else if matches!(
            (&awaited.record.op, &reply),
            (Op::One(Step::Quiet(_)), Reply::Simple(_))
        ) {
            self.engine.reach("quiet update");
        }
        if refused.is_some() || self.was_aborted(&awaited, &reply) {
            awaited.record.outcome = Outcome::Refused;
        }
        match awaited.what.clone() {
            Asked::Select(db) => {
                self.clients[client].ready = reply == Reply::Integer(0);
                self.clients[client].db = db;
            }
            Asked::Fsync(mode) => self.modes.answered(mode, &reply, self.engine.now_us),
            Asked::Other(_) if client == self.operator() => {}
            Asked::Other(_) => self.finish(1),
            Asked::Flush(db) => {
                self.record_flush(db, &awaited.record);
                self.finish(1);
            }
            Asked::Unit(unit) => {
                self.on_unit_answered(client, unit);
                self.record(unit, awaited.record);
            }
            Asked::Watched(unit, key) => {
                if let Outcome::Seen(reply) = &awaited.record.outcome {
                    let seen = match reply {
                        Reply::Bulk(value) => Some(value.clone()),
                        _ => None,
                    };
                    self.clients[client].watched = Some((unit, key, seen));
                }
                self.record(unit, awaited.record);
                self.finish(1);
            }
        }
    }

    fn on_unit_answered(&mut self, client: usize, unit: usize) {
        if client == self.operator() {
            self.audit.retain(|u| *u != unit);
        } else {
            self.finish(1);
        }
    }

    /// Whether a transaction did not run because of a watched key.
    fn was_aborted(&mut self, awaited: &Awaited, reply: &Reply) -> bool {
        let Op::Transaction { .. } = awaited.record.op else {
            return false;
        };
        if matches!(reply, Reply::Null | Reply::NullArray) {
            self.engine.reach("watched key touched");
            return true;
        }
        self.engine.reach("exec succeeded");
        false
    }

    fn record(&mut self, unit: usize, record: Record) {
        if record.outcome == Outcome::Open {
            self.engine.reach("outcome unknown");
        }
        let life = match self.links.get(record.connection as usize) {
            Some(link) => link.life as usize - 1,
            None => return,
        };
        self.history.add(unit, life, record);
    }

    fn record_flush(&mut self, db: usize, record: &Record) {
        for unit in 0..self.history.units.len() {
            if self.history.units[unit].db == db {
                self.record(unit, record.clone());
            }
        }
    }

    /// Operations came to their end; a crash may be due.
    fn finish(&mut self, count: u64) {
        self.finished += count;
        let full = |span: &(u64, u64)| (span.0..span.1).contains(&self.finished);
        self.disk.full = !self.calm && self.plan.disk.full.iter().any(full);
        if self.disk.full && self.full_since_us.is_none() {
            self.full_since_us = Some(self.engine.now_us);
        }
        // Else the operator says when.
        if self.power == Power::Up
            && !self.plan.switches_log()
            && let Some(crash) = self
                .crashes
                .pop_front_if(|c| c.after_replies <= self.finished)
        {
            let at = self.engine.now_us + crash.delay_us;
            self.push(at, Some(self.life), What::Crash(Box::new(crash)));
        }
    }

    pub(super) fn on_client_lost(&mut self, link: usize) {
        let client = self.links[link].client;
        if let Some(number) = self.lattice_client(client) {
            return self.on_lattice_client_lost(number, link);
        }
        if let Some(number) = self.queue_client(client) {
            return self.on_queue_client_lost(number, link);
        }
        if self.clients[client].state != State::Connected(link) {
            return;
        }
        let open = self.clients[client].lost();
        self.engine.note(
            format_args!("c{client}"),
            format_args!("lost its connection, {} requests open", open.len()),
        );
        for awaited in open {
            match awaited.what {
                Asked::Unit(unit) | Asked::Watched(unit, _) => self.record(unit, awaited.record),
                Asked::Flush(db) => self.record_flush(db, &awaited.record),
                Asked::Select(_) | Asked::Fsync(_) => continue,
                Asked::Other(_) => {}
            }
            if client != self.operator() {
                self.finish(1);
            }
        }
        let wait = self.network.skewed(10, 20_000);
        self.act_in(client, wait);
    }
}
