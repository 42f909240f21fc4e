//! What the clients of lattice keyspaces do; see [`crate::node::lattice`].

use super::{CALM_LIMIT_US, Power, What, World};
use crate::engine::trace::show;
use crate::node::client::State;
use crate::node::lattice::{Ask, Judged, Kind};
use rufous_resp::Reply;

impl World {
    /// Which client of lattice keyspaces this is, if it is one.
    pub(super) fn lattice_client(&self, client: usize) -> Option<usize> {
        client.checked_sub(self.clients.len() + self.queues.clients.len())
    }

    fn number_of(&self, number: usize) -> usize {
        self.clients.len() + self.queues.clients.len() + number
    }

    pub(super) fn on_lattice_act(&mut self, number: usize) {
        let client = self.number_of(number);
        let audits = self.lattice.auditor(number);
        if audits.is_some_and(|worker| !self.lattice.audit.iter().any(|(at, _)| *at == worker)) {
            return;
        }
        match self.lattice.clients[number].state {
            State::Away if self.power == Power::Up => self.connect_lattice_client(number, audits),
            State::Away => {
                let wait = self.network.skewed(500, 50_000);
                return self.act_in(client, wait);
            }
            State::Connected(_) => {}
        }
        let State::Connected(link) = self.lattice.clients[number].state else {
            return;
        };
        let me = &self.lattice.clients[number];
        if !me.asked.is_empty() || !self.links[link].open || self.links[link].ended {
            return;
        }
        if audits.is_none() && self.calm {
            self.lattice.clients[number].left = 0;
        }
        if audits.is_none() && self.lattice.clients[number].is_done() {
            return;
        }
        let mut bytes = Vec::new();
        match audits {
            Some(worker) => self.lattice.audit(number, worker, &mut bytes),
            None => self.lattice.compose(number, self.engine.now_us, &mut bytes),
        }
        self.send_to_node(link, bytes);
        let leaves = self.plan.disconnect;
        if audits.is_none() && self.lattice.clients[number].random.chance(leaves) {
            self.leave_lattice(link);
        }
    }

    /// The client goes away at once, or sends no more and reads on.
    fn leave_lattice(&mut self, link: usize) {
        let gone = self.network.chance(0.6);
        let at = self.arrival_at_node(link);
        self.push(at, Some(self.life), What::LeftNode { link, gone });
        if gone {
            self.push(self.engine.now_us, None, What::ClientLost { link });
        }
        self.links[link].ended = true;
    }

    fn connect_lattice_client(&mut self, number: usize, worker: Option<usize>) {
        let any = self.network.index(self.seats.len());
        let worker = worker.unwrap_or(any);
        let link = self.open_link(self.number_of(number), worker);
        self.lattice.clients[number].connected(link, worker, self.life as usize);
    }

    pub(super) fn on_bytes_to_lattice_client(&mut self, number: usize, link: usize, bytes: &[u8]) {
        if self.lattice.clients[number].state != State::Connected(link) {
            return;
        }
        self.engine.note(
            format_args!("l{number}"),
            format_args!("receives {}", show(bytes)),
        );
        let answered = match self.lattice.clients[number].receive(bytes) {
            Ok(answered) => answered,
            Err(problem) => return self.fail(format!("lattice client {number}: {problem}")),
        };
        let any = !answered.is_empty();
        for asked in answered {
            match (&asked.ask, asked.got.last()) {
                (Ask::Impossible, Some(Reply::Error(_))) => self.engine.reach("lattice refused"),
                (Ask::Table, Some(Reply::Simple(_))) => self.engine.reach("table changed"),
                (Ask::Act(_), Some(Reply::Array(_))) => self.engine.reach("lattice exec"),
                (Ask::Look(keys), Some(Reply::Array(all)))
                    if self.lattice.keys[keys[0]].kind == Kind::Note && all.len() > 2 =>
                {
                    self.engine.reach("siblings shown");
                }
                _ => {}
            }
            if let Err(problem) = self.lattice.answer(number, asked, self.engine.now_us) {
                return self.fail(format!("lattice client {number}: {problem}"));
            }
        }
        if any && self.lattice.clients[number].asked.is_empty() {
            let most = 2 * self.plan.think_us;
            let us = match self.lattice.auditor(number) {
                Some(_) => 10,
                None => self.lattice.clients[number].random.skewed(1, most),
            };
            // Where it was refused, it asks again after a while.
            let wait = if self.lattice.clients[number].ready {
                us
            } else {
                us.max(1_000)
            };
            self.act_in(self.number_of(number), wait.max(1));
        }
    }

    pub(super) fn on_lattice_client_lost(&mut self, number: usize, link: usize) {
        let me = &mut self.lattice.clients[number];
        if me.state != State::Connected(link) {
            return;
        }
        me.state = State::Away;
        me.asked.clear();
        self.engine.note(
            format_args!("l{number}"),
            format_args!("lost its connection"),
        );
        let wait = self.network.skewed(10, 20_000);
        self.act_in(self.number_of(number), wait);
    }

    /// Reads everything at every worker, and judges.
    pub(super) fn look_at_lattice(&mut self) {
        if self.lattice.clients.is_empty() || self.failed() {
            return;
        }
        let limit = self.engine.now_us + CALM_LIMIT_US;
        self.until("lattice clients are at rest", limit, |w| w.lattice.rest());
        // What is gone by its deadline is forgotten after it, and so this can
        // only be asked for in runs that have none under way any more.
        let from_us = self.engine.now_us;
        self.lattice.begin_audit(self.seats.len());
        for number in 0..self.lattice.clients.len() {
            if self.lattice.auditor(number).is_some() {
                self.act_in(self.number_of(number), 1);
            }
        }
        self.until("all replicas are read", limit, |w| {
            w.lattice.audit.is_empty()
        });
        if self.failed() {
            return;
        }
        let judged = self.lattice.judge(&Judged {
            epochs: &self.history.epochs,
            clock: &self.clock,
            from_us,
            now_us: self.engine.now_us,
            is_steady: self.plan.jumps.is_empty(),
        });
        if let Err(problem) = judged {
            return self.fail(problem);
        }
        if self.lattice.remembers_long() {
            return;
        }
        self.until("nobody remembers what is gone", limit, |w| {
            let shards = w.seats.iter().map(|seat| &seat.front.kernel.shard);
            shards.into_iter().all(|shard| shard.graves_len() == 0)
        });
    }
}
