//! Sessions between nodes: they begin and end at all workers of both. Nodes may be away for long, and starts do not
//! wait for them.

use super::{Event, Node, Session, World, pair};
use crate::engine::Fault;
use crate::gossip::plan::Mode;
use rufous_kernel::replicate::gossip::Peer;
use rufous_kernel::replicate::member::node_of;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How long a node is away that others are looked at without.
const AWAY_US: u64 = 4_000_000;

impl World {
    /// Something breaks now and then.
    pub(super) fn misfortune(&mut self) {
        let count = self.nodes.len();
        if self.plan.has_partings() && self.left == self.plan.operations / 2 {
            let at = self.random.index(count);
            self.after(1, Event::Part(at));
        }
        if self.random.chance(self.plan.breaks) {
            let a = self.random.index(count);
            let b = (a + 1 + self.random.index(count - 1)) % count;
            self.after(1, Event::Break(a, b));
        }
        if self.random.chance(self.plan.crashes) {
            let at = self.random.index(count);
            self.after(1, Event::Crash(at));
        }
        if self.random.chance(self.plan.drops) {
            let at = self.random.index(count);
            self.after(1, Event::Drop(at));
        }
        if self.plan.saves > 0.0 && self.random.chance(self.plan.saves) {
            let at = self.random.index(count);
            self.begin_save(at);
        }
    }

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

    pub(super) fn on_part(&mut self, at: usize) {
        if !self.nodes.iter().all(|node| node.serves) {
            return;
        }
        self.note(at, format_args!("goes away"));
        self.stop(at);
        self.after(AWAY_US - AWAY_US / 8, Event::Look(at));
        self.after(AWAY_US, Event::Start(at));
    }

    /// What the others have sent since must not wait for the node that is away.
    pub(super) fn on_look(&mut self, at: usize) {
        let others: Vec<usize> = (0..self.nodes.len()).filter(|other| *other != at).collect();
        let mut pairs = others.iter().flat_map(|a| others.iter().map(|b| (*a, *b)));
        let is_whole = pairs.all(|(a, b)| a == b || self.sessions.contains_key(&pair(a, b)));
        let all_serve = others.iter().all(|other| self.nodes[*other].serves);
        if self.left > 0 || self.nodes[at].is_running || !is_whole || !all_serve {
            return;
        }
        self.engine.reach("parted");
        let seats = others.iter().flat_map(|other| &self.nodes[*other].seats);
        let is_other = |from: &u16| node_of(*from) != self.nodes[at].number;
        let mut held = seats.flat_map(|seat| {
            let own = seat.replicas.replica();
            let from = seat.replicas.senders_held_back().filter(is_other);
            from.map(move |from| (own, from))
        });
        if let Some((own, from)) = held.next() {
            let what =
                format!("replica {own} holds back what {from} has sent, while node {at} is away");
            self.engine.fail(what);
        }
    }

    /// How many times as long as usual a node that has crashed is away.
    pub(super) fn absence(&mut self) -> u64 {
        if self.plan.mode == Mode::Away && self.random.chance(0.4) {
            self.random.between(5, 30)
        } else {
            1
        }
    }

    /// A node starts: in a while it serves without nodes that it does not reach.
    pub(super) fn look_for_absent(&mut self, at: usize) {
        if self.plan.mode == Mode::Away {
            let life = self.nodes[at].life;
            let after = self.random.between(1, 2 * self.plan.away_us);
            self.after(after, Event::Excuse(at, life));
        }
    }

    pub(super) fn on_excuse(&mut self, at: usize, life: usize) {
        if !self.is_in(at, life) || self.nodes[at].serves {
            return;
        }
        let is_reached = |other: usize| self.sessions.contains_key(&pair(at, other));
        let reached = (0..self.nodes.len()).filter(|&other| other == at || is_reached(other));
        let reached: Vec<&Node> = reached.map(|other| &self.nodes[other]).collect();
        // One that has not served yet has nothing of its own.
        let has_keys = self.nodes[at].has_served || reached.iter().any(|node| node.serves);
        if !has_keys && self.fault != Fault::NewServesAlone {
            return self.look_for_absent(at);
        }
        let reached: BTreeSet<u16> = reached.iter().map(|node| node.number).collect();
        let away: BTreeSet<u16> = self.view.nodes.difference(&reached).copied().collect();
        if !away.is_empty() && self.nodes[at].has_exchanged {
            self.note(at, format_args!("does not wait for {away:?}"));
        }
        for worker in 0..self.nodes[at].seats.len() {
            self.nodes[at].seats[worker].replicas.excuse(away.clone());
            self.end_turn(at, worker);
        }
        self.look_for_absent(at);
    }
}
