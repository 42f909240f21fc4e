//! Sessions between nodes: they begin and end at all workers of both.

use super::{Event, Node, Session, World, pair};
use rufous_kernel::replicate::gossip::Peer;
use std::sync::Arc;

impl World {
    pub(super) fn disconnect(&mut self, a: usize, b: usize) {
        if self.sessions.remove(&pair(a, b)).is_none() {
            return;
        }
        self.note(a, format_args!("no session with {b}"));
        for (at, other) in [(a, b), (b, a)] {
            let number = self.nodes[other].number;
            for seat in &mut self.nodes[at].seats {
                seat.gossip.down(number);
                seat.drop_sent(number);
            }
        }
        let after = self.random.between(1, self.plan.away_us);
        self.after(after, Event::Connect(a, b));
    }

    pub(super) fn on_connect(&mut self, a: usize, b: usize) {
        if self.sessions.contains_key(&pair(a, b)) {
            return;
        }
        let numbers = [self.nodes[a].number, self.nodes[b].number];
        let ready = |node: &Node| node.is_running && node.has_exchanged;
        if !ready(&self.nodes[a]) || !ready(&self.nodes[b]) {
            // A starting node connects by itself.
            return;
        }
        let (first, second) = pair(a, b);
        let workers = (
            self.random.index(self.nodes[first].seats.len()),
            self.random.index(self.nodes[second].seats.len()),
        );
        let knows = |world: &Self, at: usize, worker: usize| {
            let epoch = world.nodes[at].seats[worker].epoch;
            epoch == world.view.epoch && numbers.iter().all(|no| world.view.nodes.contains(no))
        };
        if !knows(self, first, workers.0) || !knows(self, second, workers.1) {
            if numbers.iter().all(|no| self.view.nodes.contains(no)) {
                self.after(1_000, Event::Connect(a, b));
            }
            return;
        }
        self.numbers += 1;
        let session = Session {
            number: self.numbers,
            workers,
        };
        self.sessions.insert(pair(a, b), session);
        self.note(a, format_args!("session with {b}"));
        for (at, other) in [(a, b), (b, a)] {
            let number = self.nodes[other].number;
            for worker in 0..self.nodes[at].seats.len() {
                self.nodes[at].seats[worker].gossip.up(number);
                self.end_turn(at, worker);
            }
        }
    }

    pub(super) fn on_net(
        &mut self,
        session: u64,
        from: (u16, u16),
        (at, to): (usize, u16),
        peer: Peer,
    ) {
        if !self.sessions.values().any(|known| known.number == session) {
            return;
        }
        let workers = self.nodes[at].seats.len();
        let worker = usize::from(to) % workers;
        let seat = &mut self.nodes[at].seats[worker];
        // invariant: nodes of this world send what they mean
        let now = seat.now(self.engine.now_us);
        let all = seat
            .gossip
            .take(now, from, peer)
            .expect("a message as it was sent");
        self.take(at, worker, all);
        self.end_turn(at, worker);
    }

    /// Messages of other nodes, for all workers.
    pub(super) fn take(&mut self, at: usize, worker: usize, all: Vec<Arc<[u8]>>) {
        let workers = self.nodes[at].seats.len();
        for bytes in all {
            self.nodes[at].seats[worker].receive(self.engine.now_us, Arc::clone(&bytes));
            for other in (0..workers).filter(|&other| other != worker) {
                self.hand_on(at, (worker, other), Arc::clone(&bytes));
            }
        }
    }

    pub(super) fn connect_all(&mut self, at: usize) {
        for other in (0..self.nodes.len()).filter(|&other| other != at) {
            let after = self.random.between(1, self.plan.away_us.min(20_000));
            self.after(after, Event::Connect(at, other));
        }
    }
}
