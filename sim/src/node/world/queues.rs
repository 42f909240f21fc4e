//! What the clients of queues do; see [`crate::node::queues`].

use super::{CALM_LIMIT_US, Power, What, World};
use crate::engine::trace::show;
use crate::node::client::State;
use crate::node::queues::Ask;
use rufous_resp::Reply;

/// How often clients line up, and are given something.
const ROUNDS: usize = 4;
/// The longest that a request and its reply are on their way, while nothing
/// else is.
const SETTLED_US: u64 = 100_000;

impl World {
    /// Which client of queues this is, if it is one.
    pub(super) fn queue_client(&self, client: usize) -> Option<usize> {
        client.checked_sub(self.clients.len())
    }

    pub(super) fn on_queue_act(&mut self, number: usize) {
        let client = self.clients.len() + number;
        match self.queues.clients[number].state {
            State::Away if self.power == Power::Up => self.connect_queue_client(number),
            State::Away => {
                let wait = self.network.skewed(500, 50_000);
                return self.act_in(client, wait);
            }
            State::Connected(_) => {}
        }
        let State::Connected(link) = self.queues.clients[number].state else {
            return;
        };
        let me = &self.queues.clients[number];
        if me.asked.is_some() || !self.links[link].open || self.links[link].ended {
            return;
        }
        let audits = number == self.queues.auditor();
        let idle = self.queues.audit.is_empty() && self.queues.fed.is_empty();
        let invited = self.queues.invited == Some(number);
        if audits && idle || !audits && !invited && (self.calm || me.left == 0) {
            return;
        }
        let mut bytes = Vec::new();
        let (fed, looked) = (self.queues.fed.last(), self.queues.audit.last());
        let (ask, replies) = match (fed.copied(), looked.copied()) {
            (Some(key), _) if audits && me.ready => self.queues.feed(key, &mut bytes),
            (_, Some(key)) if audits && me.ready => self.queues.look(key, &mut bytes),
            _ => self.queues.compose(number, &mut bytes),
        };
        let may_wait = matches!(ask, Ask::Pop(..) | Ask::Move(..));
        if let Ask::Pop(keys, ..) = &ask
            && let [key] = keys[..]
        {
            let worker = self.links[link].worker;
            self.queues.order.ask(number, link, worker, key);
        }
        if let Ask::Move(from, ..) = ask {
            self.queues.order.ask_to_move(link, from);
        }
        self.queues.clients[number].ask(ask, replies, self.engine.now_us);
        self.send_to_node(link, bytes);
        if may_wait && !self.calm && self.queues.clients[number].random.chance(0.1) {
            self.leave_queue(number, link);
        }
    }

    /// A worker took a turn, in which replies left.
    pub(super) fn judge_order(&mut self, worker: usize, left: &[(usize, bool)]) {
        let (links, seats) = (&self.links, &self.seats);
        self.queues.order.turn(worker, |link| {
            let link = &links[link];
            link.open && link.bytes_under_way == 0 && !seats[worker].keeps_bytes_of(link.conn)
        });
        match self.queues.order.leave(left) {
            Ok(judged) => (0..judged).for_each(|_| self.engine.reach("order judged")),
            Err(problem) => self.fail(problem),
        }
    }

    /// The client goes away after a while.
    fn leave_queue(&mut self, number: usize, link: usize) {
        let wait = self.queues.clients[number].random.skewed(10, 2_000_000);
        let gone = self.queues.clients[number].random.chance(0.6);
        let at = self.engine.now_us + wait;
        self.push(at, Some(self.life), What::LeftNode { link, gone });
        if gone {
            self.push(at, None, What::ClientLost { link });
        }
    }

    fn connect_queue_client(&mut self, number: usize) {
        let worker = self.network.index(self.seats.len());
        let link = self.open_link(self.clients.len() + number, worker);
        self.queues.clients[number].connected(link);
    }

    pub(super) fn on_bytes_to_queue_client(&mut self, number: usize, link: usize, bytes: &[u8]) {
        if self.queues.clients[number].state != State::Connected(link) {
            return;
        }
        self.engine.note(
            format_args!("q{number}"),
            format_args!("receives {}", show(bytes)),
        );
        let (asked, reply) = match self.queues.clients[number].receive(bytes) {
            Ok(None) => return,
            Ok(Some(answered)) => answered,
            Err(problem) => return self.fail(format!("queue client {number}: {problem}")),
        };
        let waited = matches!(asked.ask, Ask::Pop(..) | Ask::Move(..));
        match &reply {
            Reply::Null | Reply::NullArray if waited => self.engine.reach("wait timed out"),
            Reply::Array(_) | Reply::Bulk(_)
                if waited && self.engine.now_us > asked.at_us + 20_000 =>
            {
                self.engine.reach("wait served");
            }
            Reply::Error(_) => self.queues.clients[number].ready = false,
            _ => {}
        }
        let life = self.links[link].life as usize;
        let noted = self
            .queues
            .note(number, asked, Some(&reply), life, self.engine.now_us);
        if let Err(problem) = noted {
            return self.fail(format!("queue client {number}: {problem}"));
        }
        let us = match number == self.queues.auditor() {
            true => 1_000,
            false => {
                let most = 2 * self.plan.think_us;
                self.queues.clients[number].random.skewed(1, most)
            }
        };
        self.act_in(self.clients.len() + number, us.max(1));
    }

    pub(super) fn on_queue_client_lost(&mut self, number: usize, link: usize) {
        if self.queues.clients[number].state != State::Connected(link) {
            return;
        }
        self.queues.clients[number].state = State::Away;
        self.engine.note(
            format_args!("q{number}"),
            format_args!("lost its connection"),
        );
        if let Some(asked) = self.queues.clients[number].asked.take() {
            let life = self.links[link].life as usize;
            let noted = self
                .queues
                .note(number, asked, None, life, self.engine.now_us);
            if let Err(problem) = noted {
                return self.fail(problem);
            }
        }
        let wait = self.network.skewed(10, 20_000);
        self.act_in(self.clients.len() + number, wait);
    }

    /// Has clients of queues wait, gives some of them something, and judges.
    pub(super) fn look_at_queues(&mut self) {
        for round in 0..ROUNDS {
            if self.queues.clients.is_empty() || self.failed() {
                return;
            }
            self.line_up(round);
            self.queues.fed = (0..self.queues.keys.len()).collect();
            self.act_in(self.clients.len() + self.queues.auditor(), 1);
            let limit = self.engine.now_us + CALM_LIMIT_US;
            self.until("all queues are fed", limit, |w| w.queues.fed.is_empty());
            self.settle();
            self.read_queues();
        }
    }

    /// All idle clients begin to wait, one after the other.
    fn line_up(&mut self, round: usize) {
        let all = self.queues.auditor();
        for number in (0..all).map(|n| (n + round) % all) {
            if self.failed() || self.queues.clients[number].asked.is_some() {
                continue;
            }
            self.queues.invited = Some(number);
            self.act_in(self.clients.len() + number, 1);
            let limit = self.engine.now_us + CALM_LIMIT_US;
            self.until("a client waits for a queue", limit, |w| {
                w.queues.invited.is_none()
            });
            self.settle();
        }
    }

    /// Lets everything come to where it is on its way to.
    fn settle(&mut self) {
        if self.failed() {
            return;
        }
        self.pass_us(SETTLED_US);
        let limit = self.engine.now_us + CALM_LIMIT_US;
        self.until("the queues are at rest", limit, |w| {
            w.queues.rest() && w.seats.iter().all(|s| s.is_idle())
        });
        self.pass_us(SETTLED_US);
    }

    /// Reads all queues and judges.
    fn read_queues(&mut self) {
        if self.failed() {
            return;
        }
        self.queues.begin_audit();
        self.act_in(self.clients.len() + self.queues.auditor(), 1);
        let limit = self.engine.now_us + CALM_LIMIT_US;
        self.until("all queues are read", limit, |w| w.queues.audit.is_empty());
        if self.failed() {
            return;
        }
        let judged = self.queues.judge(&self.history.epochs, self.engine.now_us);
        if let Err(problem) = judged {
            self.fail(problem);
        }
    }
}
